# SPDX-License-Identifier: Apache-2.0
"""The one place where the controller starts programs: fixed argument lists, never a shell."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

Process = subprocess.Popen[bytes]
_LONGEST_MS = 2**31 - 1
"""That poll(2) takes: 24 days."""

ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM")
"""Words before a program that gets SIGTERM when the process that starts it has ended, in whatever way."""

_held: list[int] = []


@contextmanager
def held_by_children(descriptor: int) -> Iterator[None]:
    """Programs that are started meanwhile have this descriptor, and so have theirs.

    A lock on its file (flock) is then released when the last of them has ended, also if this process is killed.
    """
    _held.append(descriptor)
    try:
        yield
    finally:
        _held.remove(descriptor)


def run(
    argv: Sequence[str],
    *,
    stdin: str = "",
    timeout_s: float = 60.0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end and return its standard output.  env: its whole environment; None: this process's.

    Raises TestbedError with the program's own words when it can't be started, fails or
    takes longer than timeout_s.
    """
    try:
        done = subprocess.run(
            list(argv), input=stdin, capture_output=True, encoding="utf-8", errors="replace", timeout=timeout_s,
            check=False, cwd=cwd, env=env, pass_fds=_held,
        )  # fmt: skip
    except OSError as error:
        raise TestbedError(f"{argv[0]}: can't be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"{argv[0]}: did not end within {timeout_s:g} s") from error
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip() or "no output"
        raise TestbedError(f"{' '.join(argv)}: exit {done.returncode}: {output}")
    return done.stdout


def ended(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> tuple[int | None, str]:
    """Run a program; its exit code, None if it did not end in time, and all that it printed.

    It is in a session of its own, which is killed at its end, and ends with this process.  Raises TestbedError when it
    can't be started.
    """
    try:
        process = subprocess.Popen(
            [*ENDS_WITH_US, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=dict(env), cwd=cwd, start_new_session=True, pass_fds=_held,
        )  # fmt: skip
    except OSError as error:
        raise TestbedError(f"{argv[0]}: can't be started: {error.strerror}") from error
    try:
        output, _ = process.communicate(timeout=timeout_s)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def start(
    argv: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path | None = None, files: Sequence[int] = ()
) -> Process:
    """Start a program in a session of its own, with these descriptors; all it prints goes to a file."""
    with log.open("wb") as out:
        try:
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
                pass_fds=[*_held, *files],
            )
        except OSError as error:
            raise TestbedError(f"{argv[0]}: can't be started: {error.strerror}") from error


def start_with(argv: Sequence[str], outputs: tuple[int, int], env: Mapping[str, str], cwd: str) -> Process:
    """Start a program in a session of its own; outputs: the descriptors of its standard output and error.

    Raises OSError when it can't be started.
    """
    stdout, stderr = outputs
    return subprocess.Popen(
        list(argv), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=dict(env), cwd=cwd,
        start_new_session=True,
    )  # fmt: skip


def interact(argv: Sequence[str], *, env: Mapping[str, str]) -> int:
    """Run a program at the user's terminal and return its exit code."""
    return subprocess.run(list(argv), env=dict(env), check=False).returncode


def wait(process: Process, timeout_s: float) -> bool:
    """Whether a program ended within a time.

    Popen.wait looks every 50 ms, a tenth of what a short point takes.
    """
    if process.poll() is None:
        end = os.pidfd_open(process.pid)
        try:
            ended = select.poll()
            ended.register(end, select.POLLIN)
            ended.poll(min(timeout_s * 1000, _LONGEST_MS))
        finally:
            os.close(end)
    return process.poll() is not None
