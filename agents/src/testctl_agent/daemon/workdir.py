# SPDX-License-Identifier: Apache-2.0
"""Ensures that the working directory belongs to the agent alone, and cleans up after an earlier agent."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

MARK = ".testctl-agent"
"""A file of this name marks a directory that an agent made, or that was empty when it came."""
_TEXT = "The working directory of a testctl-agent, which removes what lies here.\n"
LEASE = re.compile(r"lease-[0-9]+")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def own(folder: Path) -> None:
    """Make the directory, or take one that is its own already.  Raises TestbedError.

    Its own: of this user, writable by nobody else, and marked or empty.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check(folder)
        mark = folder / MARK
        if not mark.is_file() or mark.is_symlink():
            strangers = sorted(path.name for path in folder.iterdir())
            if strangers:
                raise TestbedError(
                    f"{folder}: want the agent's own working directory, empty or with its file {MARK}; got one with "
                    f"{', '.join(strangers[:5])}"
                )
            mark.write_text(_TEXT, encoding="utf-8")
    except OSError as error:
        raise TestbedError(f"{folder}: can't be the working directory: {error.strerror}") from error


def _check(folder: Path) -> None:
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise TestbedError(f"{folder}: want a working directory of user {os.geteuid()}; got one of {status.st_uid}")
    if status.st_mode & _OTHERS_WRITE:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        raise TestbedError(f"{folder}: want a working directory that nobody else may write to (0700); got mode {mode}")
