# SPDX-License-Identifier: Apache-2.0
"""The name of a kernel of one's own on the hosts of a rack, and how uname -r says it: 6.12.117-testctl-NAME.

It is part of the version (LOCALVERSION), of the names of files in /boot and of a Debian package.  A plan names the
kernel by it.
"""

from __future__ import annotations

import re

from testctl_agent.spec.errors import PlanError

MARK = "-testctl-"
"""Between the tree's version and the name: such a kernel is installed and removed by testctl alone."""

PACKAGE = "linux-image-"
"""What the names of packages with a kernel begin with."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9.+-]{0,22}[a-z0-9+])?")
"""uname -r has at most 64 characters, of which linux-next's own version takes 24."""
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
_TAKEN = ("dbg", "recovery")
"""Last words of the package with debug information, and of an entry of GRUB's menu."""


def check(name: str) -> str:
    """The name.  Raises PlanError for one that can't be a kernel's."""
    if not _NAME.fullmatch(name):
        raise PlanError(
            f"kernel {name!r}: want a name of lower case letters, digits, '.', '+', '-': at most 24, first a letter "
            "or a digit, the last no '.' or '-'"
        )
    if _VERSION.fullmatch(name):
        raise PlanError(f"kernel {name!r}: want a name that is no version: a plan's {name} is Linux {name}")
    if name.rpartition("-")[2] in _TAKEN:
        raise PlanError(f"kernel {name!r}: want a name that does not end in {' or '.join(_TAKEN)}, which is Debian's")
    return name


def local_version(name: str) -> str:
    """What uname -r has after the tree's version."""
    return MARK + name


def name_of(release: str) -> str:
    """The name in a release; "" for a kernel that testctl did not install."""
    return release.partition(MARK)[2]


def means(name: str, release: str) -> bool:
    """Whether a release is of that name: testctl's exactly, another one if it ends in -NAME."""
    return name_of(release) == name if MARK in release else release.endswith(f"-{name}")
