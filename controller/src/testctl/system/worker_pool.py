# SPDX-License-Identifier: Apache-2.0
"""Pools of worker processes that end with the process that started them, whatever ends it."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl.system import garbage, temporary
from testctl.system.netns_names import Owner, start_time
from testctl.system.process_groups import end_on_sigterm

LAST_S = 2.0
"""For workers to end what they run."""
SEMAPHORES = Path("/dev/shm")
_SAFE = "PYTHONSAFEPATH"
_SURVIVE = {"jemalloc_bg_thd\n"}
"""Threads that are there again after a fork; jemalloc is Arrow's."""
_NAME = re.compile(r"sem\.testctl-([0-9]+)-([0-9]+)-([0-9]+)-.*")


class _Worker(SpawnProcess):
    """A process started afresh, which does not import the command line again: it needs nothing of it."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:
        program = sys.modules["__main__"]
        if _is_command(program):
            sys.modules["__main__"] = ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = program


def _is_command(program: ModuleType) -> bool:
    """Whether it is `testctl`; any other program may have what its workers run."""
    name = program.__spec__.name if program.__spec__ else getattr(getattr(program, "main", None), "__module__", "")
    return name == "testctl.cli.main"


class _Context(SpawnContext):
    Process = _Worker


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that die with this process, and their labs with them; after an exception they are killed.

    Raises TestbedError where /dev/shm has no space for their semaphores, or can't be written to.
    """
    sweep_semaphores()
    _name_semaphores()
    with _without_working_directory(), _pool(max(jobs, 1)) as pool:
        try:
            yield pool
        except BaseException:
            kill_workers(pool)
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _pool(jobs: int) -> ProcessPoolExecutor:
    """Forks, which import nothing again (a third of a short point's work); afresh where threads might be forked."""
    context = multiprocessing.get_context("fork") if _threads() <= _SURVIVE else _Context()
    try:
        return ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(os.getpid(),))
    except OSError as error:
        raise TestbedError(f"{SEMAPHORES}: want space for the semaphores of workers; {error.strerror}") from error


def _threads() -> set[str]:
    """The names of this process's threads, but for the main one."""
    names = set()
    for path in Path(f"/proc/{os.getpid()}/task").glob("*/comm"):
        with suppress(OSError):  # one that ends
            names |= {path.read_text()} if path.parent.name != str(os.getpid()) else set()
    return names


@contextmanager
def _without_working_directory() -> Iterator[None]:
    """Processes that multiprocessing starts take no module from the working directory, such as a re.py there."""
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        os.environ.pop(_SAFE)
        if before is not None:
            os.environ[_SAFE] = before


def _begin(parent: int) -> None:
    """What a worker does first."""
    os.environ.pop(_SAFE)  # not of the programs that it starts
    temporary.forget()
    garbage.look_seldom()
    end_on_sigterm(parent)


def kill_workers(pool: ProcessPoolExecutor) -> None:
    """End them at once, their labs first; one that does not end by itself is killed, and what it left removed."""
    processes = list((pool._processes or {}).values())
    for process in processes:
        process.terminate()
    until = time.monotonic() + LAST_S
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        process.kill()
        process.join()
    temporary.remove_temporary()


def _space() -> int:
    """The namespace in which this process's id means something."""
    return os.stat("/proc/self/ns/pid").st_ino


def _name_semaphores() -> None:
    """Those of multiprocessing, whose names a killed process leaves, say whose they are."""
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    config["semprefix"] = f"/testctl-{_space()}-{os.getpid()}-{start_time(os.getpid())}"


def sweep_semaphores(directory: Path = SEMAPHORES) -> None:
    """Remove those whose process is dead."""
    for path in directory.glob("sem.testctl-*"):
        found = _NAME.fullmatch(path.name)
        if found and int(found[1]) == _space() and not Owner(int(found[2]), int(found[3])).alive():
            with suppress(OSError):
                path.unlink()
