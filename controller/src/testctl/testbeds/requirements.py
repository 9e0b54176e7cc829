# SPDX-License-Identifier: Apache-2.0
"""What a machine must have for a testbed, and the command that installs it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnosis:
    """One requirement and its state.  `fix` is a command; an optional one does not make the doctor fail."""

    what: str
    ok: bool
    got: str
    fix: str = ""
    optional: bool = False


def install(package: str) -> str:
    """The command for a Debian package."""
    return f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install {package}"


def where(program: str) -> str | None:
    """Where a program is, also one that only root has on PATH."""
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return shutil.which(program, path=search)
