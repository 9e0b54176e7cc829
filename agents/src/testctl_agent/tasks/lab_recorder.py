# SPDX-License-Identifier: Apache-2.0
"""What the lab's kernel records by itself into a file of the machine (lab/kernel/lab_host_file.h): no program runs.

/proc of a lab has a file for each kind of recorder; a process that opens it has a recorder of its own, in the network
namespace that it is in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.tasks.task import Result, Task

_COUNTS_BYTES = 4096


@dataclass
class LabRecorder(Task):
    """A Task without a program.

    name       who it is in an error
    control    the recorder's file of /proc
    arguments  what to record
    output     the file below workdir
    read       the result, from the recorder's counters; raises TestbedError when something lacks
    """

    name: str
    control: Path
    arguments: Sequence[str]
    workdir: Path
    output: str
    read: Callable[[Mapping[str, int]], Result]
    _fd: int = -1
    _counts: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        try:
            self._fd = os.open(self.control, os.O_RDWR | os.O_CLOEXEC)
            os.write(self._fd, f"{' '.join(self.arguments)} {self._path}".encode())
        except OSError as error:
            self._close()
            raise TestbedError(f"{self.name}: {' '.join(self.arguments)} > {self._path}: {error.strerror}") from error

    @property
    def _path(self) -> Path:
        return self.workdir.absolute() / self.output

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def poll(self) -> bool:
        return bool(self._counts)

    def stop(self) -> None:
        if self._fd < 0:
            return
        try:
            os.write(self._fd, b"stop")
            text = os.pread(self._fd, _COUNTS_BYTES, 0).decode("ascii")
        finally:
            self._close()
        self._counts = {name: int(value) for name, _, value in (line.partition("=") for line in text.splitlines())}

    def result(self) -> Result:
        if not self._counts:
            raise TestbedError(f"{self.name}: has not ended")
        if error := self._counts["error"]:
            raise TestbedError(f"{self.name}: {self._path} can't be written: {os.strerror(error)}")
        return self.read(self._counts)

    def files(self) -> list[str]:
        return [self.output] if (self.workdir / self.output).exists() else []
