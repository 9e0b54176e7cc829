# SPDX-License-Identifier: Apache-2.0
"""Programs of the user's choice on the hosts of a lab: which, where, and how each ended.

Light to import: the lab's first process does it inside the virtual time.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testctl_agent.params.flow.command import ENVIRONMENT

from testctl.core.topology import Topology

HOME = "/run/tmp"
"""The directory of programs for their own files: in the lab's memory, writable."""

CASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of programs that are run one after the other (lab/boot/case_runner.py): the system's, for every user."""
OWN_TMP = """kept=$1 at=$2
shift 2
cd "${kept:-/}" && mount -t tmpfs tmp /tmp || exit
[ -z "$kept" ] || { mkdir "$kept" && mount -c --bind . "$kept" && mount -o remount,bind,ro "$kept"; } || exit
cd "$at" || exit
"""
"""Shell lines that give a program an empty /tmp: their arguments are a directory of /tmp that stays there, read-only,
or "", the program's directory, and what follows."""
NEVER_ENDED = 1000
"""In the place of the exit code of one that did not end."""


@dataclass(frozen=True)
class Program:
    """A program and its arguments, on a host.  Its output goes to the files `stdout` and `stderr`."""

    host: str
    argv: tuple[str, ...]
    stdout: str = ""
    stderr: str = ""

    @property
    def command_line(self) -> str:
        return shlex.join(self.argv)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Program:
        """What to_json gave, in a process of the same version."""
        return cls(raw["host"], tuple(raw["argv"]), raw["stdout"], raw["stderr"])


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    code     its exit code; 128 and the signal's number when a signal ended it
    stopped  whether it was ended because the last program of the lab had ended
    """

    host: str
    code: int
    stopped: bool = False


def exit_code(ended: Sequence[Ended]) -> int:
    """The last program's exit code, or else the first one of another that failed by itself."""
    codes = [ended[-1].code, *(end.code for end in ended[:-1] if not end.stopped)]
    return next((code for code in codes if code), 0)


def environment(path: str) -> dict[str, str]:
    """The environment of every program: the same for all users, but for PATH."""
    return {"PATH": path, "HOME": HOME, "TMPDIR": HOME, **ENVIRONMENT}


def search_path() -> str:
    """The user's PATH, and the directories of system programs behind it."""
    own = os.environ.get("PATH", "").split(":")
    return ":".join(dict.fromkeys([*filter(None, own), "/usr/sbin", "/usr/bin", "/sbin", "/bin"]))


FAMILIES = ("4", "6", "both")
"""The versions of IP whose addresses the names of hosts stand for."""


def names_of(topology: Topology, family: str) -> str:
    """The text of /etc/hosts for the hosts of a topology and their addresses of one of FAMILIES."""
    tables = {"4": [topology.hosts], "6": [topology.hosts6], "both": [topology.hosts, topology.hosts6]}[family]
    named = [("127.0.0.1", "localhost"), *([("::1", "localhost")] if family != "4" else [])]
    named += [(address, name) for table in tables for name, address in table.items()]
    return "".join(f"{address} {name}\n" for address, name in named)


def captured_in(workdir: Path, host: str) -> Path:
    """The capture of a host below the directory of a lab's raw files."""
    return workdir / host / "capture" / "capture.pcap"
