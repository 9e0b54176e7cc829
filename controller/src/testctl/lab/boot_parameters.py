# SPDX-License-Identifier: Apache-2.0
"""Parameters that a lab's kernel gets on its command line in addition to those that every lab has."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.lab import self_test

SET = "TESTCTL_LAB_BOOT"
"""In the environment: parameters for the kernel of every lab, such as slub_debug=FZ."""

_RESERVED = (
    "init=", "root=", "rootfstype=", "rootflags=", "mem=", "con0=", "con=", "time-travel", "uml_dir=", "umid=",
    "seccomp=",
)  # fmt: skip


def parameters(kernel: Path, seccomp: bool | None = None) -> list[str]:
    """The parameters of a kernel, by its binary.

    seccomp: whether user processes run by seccomp where the machine allows it; None: see self_test.seccomp_of
    """
    by_seccomp = self_test.seccomp_of(kernel) if seccomp is None else seccomp
    return [*_of_environment(), *(["seccomp=auto"] if by_seccomp else [])]


def key() -> str:
    """A hash of the parameters that may change what a lab records; "" if there are none."""
    given = " ".join(_of_environment())
    return hashlib.sha256(given.encode()).hexdigest()[:16] if given else ""


def check() -> None:
    """Raises PlanError if a parameter of the environment is one of the lab's own."""
    reserved = [parameter for parameter in _of_environment() if parameter.startswith(_RESERVED)]
    if reserved:
        raise PlanError(f"{SET}: want words that are not the lab's own; got {reserved[0]!r}")


def _of_environment() -> list[str]:
    return os.environ.get(SET, "").split()
