# SPDX-License-Identifier: Apache-2.0
"""The result of a kernel's self-test: kept with the kernel, and what its first part, in the lab, has to show."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError
from testctl_agent.system import durable

from testctl.system import checkout

FILE = "selftest.json"
"""File in a kernel's directory."""

SECCOMP = "TESTCTL_LAB_SECCOMP"
"""In the environment: on or off, whether user processes of a lab run by seccomp instead of ptrace."""

_HAS_SECCOMP = b"seccomp=<on/auto/off>"
_LATE_NS = 2000
_IN_TREE = ("reno", "cubic", "dctcp", "bbr", "cdg", "westwood", "vegas", "htcp", "illinois", "highspeed", "scalable")


@dataclass(frozen=True)
class Check:
    """One part of the self-test: what was looked at, whether it is as it has to be, and what it is."""

    name: str
    ok: bool
    got: str


@dataclass(frozen=True)
class SelfTest:
    """All checks of a kernel.  seccomp: whether its user processes may run by seccomp, since the digest is the same."""

    checks: tuple[Check, ...]
    seccomp: bool = False

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def summary(self) -> str:
        """passed, or what did not."""
        wrong = [f"{check.name}: {check.got}" for check in self.checks if not check.ok]
        return f"failed: {'; '.join(wrong)}" if wrong else "passed" + (", seccomp" if self.seccomp else "")

    def keep(self, kernel: Path) -> None:
        durable.write(kernel / FILE, json.dumps(asdict(self), indent=1).encode())


def kept(kernel: Path) -> SelfTest | None:
    """The self-test in a kernel's directory; None if it was not made."""
    try:
        raw = json.loads((kernel / FILE).read_text(encoding="utf-8"))
        return SelfTest(tuple(Check(**check) for check in raw["checks"]), bool(raw["seccomp"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def judged(facts: Mapping[str, Any]) -> list[Check]:
    """The checks of the facts that testbeds/kernel_facts.py read in the lab."""
    late = facts["late_ns"]
    first, again, other = facts["ports"]
    own = {path.stem.removeprefix("tcp_") for path in (checkout.lab() / "cc").glob("tcp_*.c")}
    lacking = sorted({*_IN_TREE, *own} - set(facts["ccs"]))
    exact = len(set(late)) == 1 and 0 <= late[0] < _LATE_NS
    return [
        Check("timers to the nanosecond", exact,
              f"{len(late)} timers, read {' or '.join(map(str, sorted(set(late))))} ns after their time"),
        Check("random numbers by seed", first == again != other, f"with one seed {first[:3]}… and {again[:3]}…, "
              f"with another {other[:3]}…"),
        Check("congestion controls", not lacking,
              f"lacks {', '.join(lacking)}" if lacking else f"{len(facts['ccs'])} are there"),
    ]  # fmt: skip


def has_seccomp(kernel: Path) -> bool:
    """Whether a kernel, by its binary, can run user processes by seccomp."""
    return _HAS_SECCOMP in kernel.read_bytes()


def seccomp_of(kernel: Path) -> bool:
    """Whether a lab's user processes run by seccomp: by the environment, else where the self-test saw that it repeats.

    Raises PlanError if the environment says something else than on or off.
    """
    setting = os.environ.get(SECCOMP, "")
    if setting not in ("", "on", "off"):
        raise PlanError(f"{SECCOMP}: want on or off; got {setting!r}")
    if setting:
        return setting == "on" and has_seccomp(kernel)
    tested = kept(kernel.parent)
    return tested is not None and tested.seccomp
