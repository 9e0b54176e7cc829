# SPDX-License-Identifier: Apache-2.0
"""A distribution that a test writes into a directory for the path: modules, and a .dist-info with entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from testctl_agent.system import entry_points, identity

GENERATORS, BACKENDS = "testctl_agent.generators", "testctl_agent.switch_backends"

GENERATOR = """
from testctl_agent.tasks.thread_task import ThreadTask


def task(options, workdir):
    side = "sender" if options["side"] == "client" else "receiver"
    count = int(options.get("bytes", 0))
    return ThreadTask("made up", lambda running: {"generator": "posts", "role": side, "bytes": count})
"""

BACKEND = """
from testctl_agent.switch.backend import UNSET


class Loom:
    name = "loom"

    def __init__(self, ports):
        self.values = {(port, what): value for port in ("", *ports) for what, value in UNSET.items()}

    def unavailable(self, what):
        return "" if what in UNSET else f"a port has no {what}"

    def read(self, port, what):
        return self.values[port, what]

    def apply(self, port, what, value):
        self.values[port, what] = value

    def describe(self):
        return {"forwarding": "made up"}

    def counters(self):
        return []

    def close(self):
        pass


def open_backend(ports, forwarding):
    return Loom(ports)
"""


def write(
    place: Path, name: str, words: Mapping[str, Mapping[str, str]], modules: Mapping[str, str], version: str = "1"
) -> Path:
    """Install the distribution in `place`.  words: group → word → module; modules: name → text."""
    info = place / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sections = (f"[{group}]\n" + "".join(f"{w} = {m}\n" for w, m in named.items()) for group, named in words.items())
    (info / "entry_points.txt").write_text("\n".join(sections))
    for module, text in modules.items():
        path = place.joinpath(*module.split("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    return place


@contextmanager
def on_path(place: Path) -> Iterator[None]:
    """Installed in this process for a while: found, and afterwards forgotten with what was imported of it."""
    before = set(sys.modules)
    sys.path.insert(0, str(place))
    _look_again()
    try:
        yield
    finally:
        sys.path.remove(str(place))
        _look_again()
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(place)):
                del sys.modules[name]


def _look_again() -> None:
    entry_points.forget()
    identity.version.cache_clear()
