# SPDX-License-Identifier: Apache-2.0
"""The tasks an agent runs, by name, each with a directory of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from testctl_agent.engine import limits
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.refusals import BadRequest, LimitReached
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.task import Task

_STOPPERS = 8

TaskFactory = Callable[[str, str, Mapping[str, Value], Path], Task]
"""(kind, name, options, working directory) → an unstarted task."""


class Tasks:
    """Every task since the start, or since the last `forget`.

    folder   where they write: a task's files lie in a directory of its name
    devices  those that an option `device` or `devices` may name, and names when it is not given;
             none: any
    """

    def __init__(
        self, who: str, new_task: TaskFactory, folder: Path, most: Limits, devices: Sequence[str] = ()
    ) -> None:
        self._who = who
        self._new_task = new_task
        self.folder = folder
        self._most = most
        self._devices = devices
        self._change = threading.Lock()
        self._tasks: dict[str, Task] = {}
        self._over: set[str] = set()  # could not be started
        self._alone: dict[str, threading.Lock] = {}

    def start(self, task: str, kind: str, name: str, options: Mapping[str, Value]) -> Task:
        """Start a generator or a collector; it is known, and can be stopped, even when that fails.

        Raises BadRequest or LimitReached before anything is done, TestbedError when it can't be started.
        """
        limits.task_name(self._who, task)
        limits.options(f"{self._who}, task {task}", options)
        options = self._with_devices(task, options)
        with self._change:
            if task in self._tasks:
                raise TestbedError(f"{self._who}: task {task!r} was started before")
            self._check_limits()
            made = self._make(task, kind, name, options)
            alone = self._alone[task] = threading.Lock()
            self._tasks[task] = made
        try:
            with alone:
                made.start()
        except BaseException:
            self._over.add(task)
            raise
        return made

    def _make(self, task: str, kind: str, name: str, options: Mapping[str, Value]) -> Task:
        workdir = self.folder / task
        workdir.mkdir(parents=True, exist_ok=True)
        try:
            return self._new_task(kind, name, options, workdir)
        except (ValueError, TypeError, OverflowError) as error:
            raise BadRequest(
                f"{self._who}, task {task}: {limits.shown(name)} can't take its options: {error}"
            ) from error

    def _check_limits(self) -> None:
        running = sum(not task.poll() for name, task in self._tasks.items() if name not in self._over)
        if self._most.tasks is not None and running >= self._most.tasks:
            raise LimitReached(f"{self._who}: want at most {self._most.tasks} tasks at a time; {running} run")
        if self._most.work_bytes is not None:
            limits.space_below(self._who, self.folder, self._most.work_bytes)

    def _with_devices(self, task: str, options: Mapping[str, Value]) -> Mapping[str, Value]:
        """The options with the entity's devices where they name none.  Raises BadRequest for another's."""
        if not self._devices:
            return options
        own = {"device": self._devices[0], "devices": ",".join(self._devices)}
        given = {**own, **{name: value for name, value in options.items() if value != ""}}
        if others := set(f"{given['device']},{given['devices']}".split(",")) - set(self._devices):
            raise BadRequest(
                f"{self._who}, task {task}: want devices of {', '.join(sorted(self._devices))}; "
                f"got {limits.shown(', '.join(sorted(others)))}"
            )
        return given

    def get(self, name: str) -> Task:
        """A task by its name; TestbedError when there is none."""
        task = self._tasks.get(name)
        if task is None:
            have = ", ".join(sorted(self._tasks)) or "none"
            raise TestbedError(f"{self._who}: no task {limits.shown(name)}; there are: {have}")
        return task

    @contextmanager
    def alone(self, name: str) -> Iterator[Task]:
        """A task that no other call stops or takes the result of meanwhile; TestbedError when there is none."""
        task = self.get(name)
        with self._alone.get(name, nullcontext()):
            yield task

    def stop_all(self) -> None:
        """Ask every task that still runs to end, and wait for that; all close what they hold.  What fails is logged."""
        from concurrent.futures import ThreadPoolExecutor  # long to import, and seldom used

        running = [(name, task) for name, task in self._tasks.items() if not task.poll()]
        with suppress(RuntimeError, MemoryError), ThreadPoolExecutor(_STOPPERS) as pool:  # no thread: as those below
            list(pool.map(lambda each: self._stop(*each), running))
        for name, task in list(self._tasks.items()):
            self._stop(name, task)

    def _stop(self, name: str, task: Task) -> None:
        import logging

        try:
            task.stop()
        except Exception as error:  # noqa: BLE001 -- one that can't be stopped must not keep the rest from being restored
            logging.getLogger(__name__).error("%s, task %s: not stopped: %s", self._who, name, error)

    def forget(self) -> None:
        """Remove all files; the names can be used again.  Raises TestbedError while a file is still there."""
        import shutil

        self._tasks.clear()
        self._alone.clear()
        self._over.clear()
        failed: list[str] = []
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder, onerror=lambda _, path, raised: failed.append(f"{path}: {raised[1]}"))
        if failed and self.folder.exists():
            raise TestbedError(f"{self._who}: files of a lease are not removed: {failed[0]}")
