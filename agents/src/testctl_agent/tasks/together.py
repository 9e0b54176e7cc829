# SPDX-License-Identifier: Apache-2.0
"""Several tasks as one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from testctl_agent.tasks.task import Result, Task


@dataclass
class Together:
    """A Task that is several: they start one after the other, and it has ended when all have.

    read  makes one result of theirs
    """

    tasks: Sequence[Task]
    read: Callable[[Sequence[Result]], Result]

    def start(self) -> None:
        with ExitStack() as started:
            for task in self.tasks:
                task.start()
                started.callback(task.stop)
            started.pop_all()

    def poll(self) -> bool:
        return all(task.poll() for task in self.tasks)

    def wait(self, timeout_s: float) -> bool:
        until_s = time.monotonic() + timeout_s
        return all(task.wait(max(until_s - time.monotonic(), 0.0)) for task in self.tasks)

    def stop(self) -> None:
        with ExitStack() as stops:
            for task in self.tasks:
                stops.callback(task.stop)

    def result(self) -> Result:
        return self.read([task.result() for task in self.tasks])

    def files(self) -> list[str]:
        return [file for task in self.tasks for file in task.files()]
