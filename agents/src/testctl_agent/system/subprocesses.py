# SPDX-License-Identifier: Apache-2.0
"""The one place where the agent starts programs: fixed argument lists, never a shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

Process = subprocess.Popen[bytes]
WaitTimeout = subprocess.TimeoutExpired


def which(name: str) -> str:
    """The path of a program in $PATH; "" when it is not there.  (shutil takes long to import.)"""
    places = [os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    return next((path for path in places if os.path.isfile(path) and os.access(path, os.X_OK)), "")


def run(argv: Sequence[str], stdin: str = "", timeout_s: float = 60.0) -> str:
    """Run a program to its end and return its standard output.

    Raises TestbedError with the program's output when it can't be started, fails or
    takes longer than timeout_s.
    """
    try:
        done = subprocess.run(list(argv), input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)
    except OSError as error:
        raise TestbedError(f"{argv[0]}: can't be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"{' '.join(argv)}: did not end within {timeout_s:g} s") from error
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip() or "no output"
        raise TestbedError(f"{' '.join(argv)}: exit {done.returncode}: {output}")
    return done.stdout


def start(argv: Sequence[str], stdout: Path | None = None, stderr: Path | None = None) -> Process:
    """Start a program in the background; its output goes to files, or nowhere."""
    with (stdout or Path("/dev/null")).open("ab") as out, (stderr or Path("/dev/null")).open("ab") as err:
        try:
            return subprocess.Popen(list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as error:
            raise TestbedError(f"{argv[0]}: can't be started: {error.strerror}") from error
