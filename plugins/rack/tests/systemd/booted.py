# SPDX-License-Identifier: Apache-2.0
"""A systemd that is process 1 of namespaces, over the machine's files, which stay as they are."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jinja2
import pytest
import yaml

ROOT = Path(__file__).parents[4]
ROLE = ROOT / "playbooks" / "roles" / "agent"
SYSTEMD = Path("/lib/systemd/systemd")
_READY_S = 120.0
_BOOT = """\
mount -t cgroup2 none {folder}/groups && mkdir {folder}/groups/{name} && echo $$ > {folder}/groups/{name}/cgroup.procs
exec unshare --cgroup --pid --net --uts --ipc --mount --fork --kill-child sh {script} {folder}/root {site} {source}
"""
_GONE = "mount -t cgroup2 none {folder}/groups; find {folder}/groups/{name} -depth -type d -exec rmdir {{}} +"


@dataclass(frozen=True)
class Machine:
    """pid: systemd's, as this process sees it; log: what systemd says."""

    pid: int
    log: Path

    @property
    def root(self) -> Path:
        """Its files, from here."""
        return Path(f"/proc/{self.pid}/root")

    def run(self, *words: str, check: bool = True) -> str:
        argv = ["nsenter", f"--target={self.pid}", "--all", "--wd=/", "--", *words]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=300,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + self.said()
        return done.stdout

    def said(self) -> str:
        """The newest lines of its journal, and all of systemd's own."""
        journal = self.run("journalctl", "--no-pager", "--lines=40", "--output=cat", check=False)
        return journal + self.log.read_text(encoding="utf-8")

    def shown(self, unit: str, name: str) -> str:
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)


def missing() -> str:
    """Why there can be no such systemd here; "": there can."""
    if not SYSTEMD.exists():
        return "systemd is not installed (tools/setup --test)"
    version = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=False).stdout.split()
    if not version or not version[-1].startswith(f"{sysconfig.get_python_version()}."):
        return f"the unit's Python is /usr/bin/python3: want {sysconfig.get_python_version()}, as in .venv"
    return ""


@contextmanager
def booted(folder: Path) -> Iterator[Machine]:
    """All of it goes at the end."""
    if why := missing():
        pytest.skip(why)
    name = f"testctl-boot-{os.getpid()}"
    for one in ("groups", "root"):
        (folder / one).mkdir()
    words = {"folder": folder, "name": name, "script": Path(__file__).with_name("boot.sh"),
             "site": sysconfig.get_path("purelib"), "source": ROOT / "agents" / "src"}  # fmt: skip
    log = folder / "log"
    private = ["unshare", "--mount", "--propagation=private", "sh", "-euc"]
    with log.open("w") as out:
        first = subprocess.Popen([*private, _BOOT.format(**words)], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield _ready(first, log)
    finally:
        first.send_signal(signal.SIGKILL)  # --kill-child: systemd with it
        first.wait()
        _removed([*private, _GONE.format(**words)])


def _ready(first: subprocess.Popen[bytes], log: Path) -> Machine:
    end = time.monotonic() + _READY_S
    while time.monotonic() < end and first.poll() is None:
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text(encoding="ascii").split()
        if children and Path(f"/proc/{children[0]}/comm").read_text(encoding="ascii") == "systemd\n":
            machine = Machine(int(children[0]), log)
            if machine.run("systemctl", "is-system-running", check=False).strip() in ("running", "degraded"):
                return machine
        time.sleep(0.1)
    pytest.fail(f"systemd did not start: {log.read_text(encoding='utf-8')}")


def _removed(argv: list[str]) -> None:
    """The control groups; those of processes that have just ended can't be removed yet."""
    for _ in range(50):
        if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    pytest.fail(f"can't be removed: {argv[-1]}")


def rendered(template: str) -> str:
    """A template of the agent's role, for host alpha, with the role's own defaults."""
    known = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    text = jinja2.Template((ROLE / "templates" / template).read_text(encoding="utf-8"))
    return text.render({**known, "inventory_hostname": "alpha", "agent_kind": "host"}) + "\n"


def tgen() -> Path:
    """The traffic program; a test without it is skipped."""
    path = Path(os.environ.get("TESTCTL_TGEN", ROOT / "agents" / "tgen" / "tgen"))
    if not path.exists() or shutil.which("unshare") is None:
        pytest.skip(f"{path} is not built (make -C agents/tgen)")
    return path
