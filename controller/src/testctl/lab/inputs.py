# SPDX-License-Identifier: Apache-2.0
"""What a kernel of the lab is built from, and which of it a plan needs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.lab.source import Source
from testctl.system import checkout
from testctl.system.subprocesses import run

KERNEL, CC = "lab/kernel", "lab/cc"
_INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"/]+)"', re.MULTILINE)


def files() -> list[Path]:
    """The files of the checkout that go into a kernel."""
    lab = checkout.lab()
    return sorted([*(lab / "kernel").glob("*"), *(lab / "cc").glob("*.[ch]")])


def needed(ccs: Iterable[str]) -> set[str]:
    """The files of the checkout that a kernel with these congestion controls consists of.

    All of lab/kernel, lab/cc/tcp_NAME.c of each that is the project's, and what these include of lab/cc.
    """
    by_name = {path.name: path for path in files()}
    front = [path for path in files() if path.parent.name == "kernel"]
    front += [by_name[f"tcp_{name}.c"] for name in ccs if f"tcp_{name}.c" in by_name]
    seen: dict[str, Path] = {}
    while front:
        path = front.pop()
        if path.name not in seen:
            seen[path.name] = path
            front += [by_name[n] for found in _INCLUDE.findall(path.read_bytes()) if (n := found.decode()) in by_name]
    return {_named(path) for path in seen.values()}


def _named(path: Path) -> str:
    return f"lab/{path.parent.name}/{path.name}"


@dataclass(frozen=True)
class Inputs:
    """Everything that determines a built kernel.

    source    fingerprint of the kernel's sources
    compiler  what the compiler says of itself
    files     SHA-256 of each file of lab/kernel and lab/cc by its name in the checkout
    """

    source: str
    compiler: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, source: Source) -> Inputs:
        """As they are now."""
        return cls(source.fingerprint(), run(["gcc", "--version"]), cls.hashes())

    @staticmethod
    def hashes() -> dict[str, str]:
        """Of the checkout's files."""
        return {_named(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files()}

    @classmethod
    def from_json(cls, text: str) -> Inputs:
        """Raises TestbedError for anything but the text of to_json."""
        try:
            raw = json.loads(text)
            return cls(str(raw["source"]), str(raw["compiler"]), {str(n): str(h) for n, h in raw["files"].items()})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TestbedError(f"want a kernel's source, compiler and files; got {text[:80]!r}") from error

    def to_json(self) -> str:
        return json.dumps({"source": self.source, "compiler": self.compiler, "files": dict(self.files)}, indent=1)

    @property
    def key(self) -> str:
        """Names the kernel: another input is another key."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def differences(self, built: Inputs, ccs: Collection[str] | None = None) -> list[str]:
        """Why a kernel that was built from `built` does not serve for these inputs; none: it does.

        ccs: the congestion controls that are used; None: all of them
        """
        names = self.files.keys() if ccs is None else needed(ccs)
        gone = {name for name in built.files if name not in self.files and _matters(name, ccs)}
        found = [f"{name} {'changed' if name in built.files else 'is new'}" for name in sorted(names)
                 if built.files.get(name) != self.files[name]]  # fmt: skip
        found += [f"{name} is gone" for name in sorted(gone)]
        found += ["the compiler is another one"] if built.compiler != self.compiler else []
        return found + (["the kernel's sources are others"] if built.source != self.source else [])


def _matters(name: str, ccs: Collection[str] | None) -> bool:
    """Whether a file that is no longer there was part of what is used."""
    return ccs is None or name.startswith(KERNEL) or name in {f"{CC}/tcp_{cc}.c" for cc in ccs}
