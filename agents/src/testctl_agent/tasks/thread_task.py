# SPDX-License-Identifier: Apache-2.0
"""A Task that is a function in a thread of the agent: for exchanges of a few packets, not for traffic."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from testctl_agent.spec.errors import TestbedError
from testctl_agent.tasks.task import END_S, READY_S, Result, Task

Work = Callable[["Running"], Result]


@dataclass(frozen=True)
class Running:
    """The function's argument: it sets `ready` once others may count on it, and ends soon after `stop` is set."""

    ready: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass
class ThreadTask(Task):
    """An error of the function is raised by start() or result().

    name     who it is in an error
    ready_s  how long it may take to be ready
    """

    name: str
    work: Work
    ready_s: float = READY_S
    _running: Running = field(default_factory=Running)
    _thread: threading.Thread | None = None
    _result: Result | None = None
    _error: Exception | None = None

    def _run(self) -> None:
        try:
            self._result = self.work(self._running)
        except Exception as error:  # noqa: BLE001 -- whatever it was, nobody else would learn of it
            self._error = error
        finally:
            self._running.ready.set()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()
        if not self._running.ready.wait(self.ready_s):
            self.stop()
            raise TestbedError(f"{self.name}: was not ready within {self.ready_s:g} s")
        if self._error is not None:
            raise TestbedError(f"{self.name}: {self._error}") from self._error

    def poll(self) -> bool:
        return self.wait(0)

    def wait(self, timeout_s: float) -> bool:
        if self._thread is None:
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def stop(self) -> None:
        self._running.stop.set()
        self.wait(END_S)

    def result(self) -> Result:
        if not self.poll():
            raise TestbedError(f"{self.name}: has not {'started' if self._thread is None else 'ended'}")
        if self._error is not None:
            raise TestbedError(f"{self.name}: {self._error}") from self._error
        if self._result is None:
            raise TestbedError(f"{self.name}: ended without a result")
        return self._result
