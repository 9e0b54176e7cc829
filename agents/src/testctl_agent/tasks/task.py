# SPDX-License-Identifier: Apache-2.0
"""A task of an agent: a generator or a collector, most often one program.

A module of generators/ or collect/ gives `task(options, workdir) -> Task`.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.subprocesses import Process
from testctl_agent.system.subprocesses import start as start_program

READY_S = 10.0
END_S = 10.0
_MAX_CHARS = 2000

Result = dict[str, Any]


class Task(Protocol):
    """Contract: start once; the rest in any order and as often as wanted.

    start   returns when it is ready; TestbedError when it can't be
    poll    whether it has ended
    wait    until it has ended, at most so long; whether it has: by default it asks once
    stop    ask it to end, wait for that, and close what it holds open
    result  its data; TestbedError when it failed or still runs
    files   names of what it writes below its working directory; by default none
    """

    def start(self) -> None: ...

    def poll(self) -> bool: ...

    def wait(self, timeout_s: float) -> bool:
        return self.poll()

    def stop(self) -> None: ...

    def result(self) -> Result: ...

    def files(self) -> list[str]:
        return []


@dataclass(frozen=True)
class Announcement:
    """The text by which a program says that it is ready, and the stream that it writes it to."""

    stream: Literal["stdout", "stderr"]
    text: str


def wait_for(process: Process, timeout_s: float) -> bool:
    """Sleep until a program has ended (one wake-up, no polling); whether it has.  Several threads may."""
    if process.poll() is None:
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:  # another thread has just seen its end
            process.wait()
            return True
        try:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            if poller.poll(max(timeout_s, 0.0) * 1000):
                process.wait()  # which has ended; poll() says nothing while another thread asks
        finally:
            os.close(handle)
    return process.poll() is not None


def written(name: str, file: Path) -> Callable[[int, str], Result]:
    """For ProgramTask.read: {"bytes": the size of the program's file}."""

    def read(code: int, printed: str) -> Result:
        if code != 0:
            raise TestbedError(f"{name}: exit {code}: {printed or 'no output'}")
        return {"bytes": file.stat().st_size}

    return read


@dataclass
class ProgramTask:
    """A Task that is one program.

    name          who it is in an error
    read          the result, from the exit code and its output (stderr, or the announced
                  stream); raises TestbedError when it failed
    announcement  start() waits for it; None: ready once `ready` says so
    ready         called with this task and how long it may take, before start() returns
    settle_s      how long it goes on after stop() was called, to hand over what it has
    stdout, stderr   the files below workdir that its standard output and error go to
    """

    name: str
    argv: Sequence[str]
    workdir: Path
    read: Callable[[int, str], Result]
    outputs: Sequence[str] = ()
    announcement: Announcement | None = None
    ready: Callable[[Process, float], bool] | None = None
    settle_s: float = 0.0
    stdout: str = "stdout.txt"
    stderr: str = "stderr.txt"
    _process: Process | None = None
    _pipe: int = -1
    _heard: bytearray = field(default_factory=bytearray)
    _killed: bool = False

    def start(self) -> None:
        outputs = {"stdout": self.workdir / self.stdout, "stderr": self.workdir / self.stderr}
        if self.announcement is None:
            self._process = start_program(self.argv, **outputs)
        else:
            self._pipe, write = os.pipe()
            try:
                outputs[self.announcement.stream] = Path(f"/proc/self/fd/{write}")
                self._process = start_program(self.argv, **outputs)
            finally:
                os.close(write)
            self._listen(self.announcement)
        if self.ready is not None and not self.ready(self._process, READY_S):
            raise self._not_ready()

    def _listen(self, announcement: Announcement) -> None:
        """Read the announced stream until the text comes; other output is kept."""
        poller = select.poll()
        poller.register(self._pipe, select.POLLIN)
        expected = announcement.text.encode()
        while expected not in self._heard:
            data = os.read(self._pipe, 1 << 16) if poller.poll(READY_S * 1000) else b""
            if not data:
                raise self._not_ready()
            self._heard += data

    def _not_ready(self) -> TestbedError:
        ended = self.wait(0.1)
        if not ended:
            self.stop()
        what = "ended before it was ready" if ended else f"was not ready within {READY_S:g} s"
        return TestbedError(f"{self.name}: {what}: {self._printed() or 'no output'}")

    def poll(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def wait(self, timeout_s: float) -> bool:
        return self._process is not None and wait_for(self._process, timeout_s)

    def stop(self) -> None:
        if self._process is not None and not self.wait(self.settle_s):
            self._process.send_signal(signal.SIGTERM)
            if not self.wait(END_S):
                self._killed = True
                self._process.kill()
                self.wait(END_S)
        self._printed()

    def _printed(self) -> str:
        """Standard error, and all of the announced stream, which is closed once the program has ended."""
        while self._pipe >= 0 and (self._process is None or self.poll()):
            data = os.read(self._pipe, 1 << 16)
            self._heard += data
            if not data:
                os.close(self._pipe)
                self._pipe = -1
        on_stderr = self.announcement is not None and self.announcement.stream == "stderr"
        announced = self._heard.decode(errors="replace") if on_stderr else ""
        path = self.workdir / self.stderr
        printed = announced or (path.read_text(encoding="utf-8", errors="replace") if path.exists() else "")
        return printed.strip()[-_MAX_CHARS:]

    def result(self) -> Result:
        if self._process is None or not self.poll():
            raise TestbedError(f"{self.name}: has not {'started' if self._process is None else 'ended'}")
        printed = self._printed()
        if self._killed:
            raise TestbedError(f"{self.name}: did not end within {END_S:g} s of being asked to: {printed}")
        return self.read(self._process.returncode, printed)

    def files(self) -> list[str]:
        """The outputs there are by now."""
        return [name for name in self.outputs if (self.workdir / name).exists()]
