# SPDX-License-Identifier: Apache-2.0
"""Words that a lab's kernel gets on its command line beside those that every lab has."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.lab import self_test

SET = "TESTCTL_LAB_BOOT"
"""In the environment: words for the kernel of every lab, such as slub_debug=FZ."""

_MINE = (
    "init=",
    "root=",
    "rootfstype=",
    "rootflags=",
    "mem=",
    "con0=",
    "con=",
    "time-travel",
    "uml_dir=",
    "umid=",
    "seccomp=",
)


def words(kernel: Path, seccomp: bool | None = None) -> list[str]:
    """The words for a kernel, by its binary.

    seccomp: whether user processes run by seccomp where the machine allows it; None: see self_test.seccomp_of
    """
    by_seccomp = self_test.seccomp_of(kernel) if seccomp is None else seccomp
    return [*_given(), *(["seccomp=auto"] if by_seccomp else [])]


def key() -> str:
    """A hash of the words that may change what a lab records; "" if there are none."""
    given = " ".join(_given())
    return hashlib.sha256(given.encode()).hexdigest()[:16] if given else ""


def check() -> None:
    """Raises PlanError if a word of the environment is one of the lab's own."""
    mine = [word for word in _given() if word.startswith(_MINE)]
    if mine:
        raise PlanError(f"{SET}: want words that are not the lab's own; got {mine[0]!r}")


def _given() -> list[str]:
    return os.environ.get(SET, "").split()
