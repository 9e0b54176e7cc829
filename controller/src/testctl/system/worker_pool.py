# SPDX-License-Identifier: Apache-2.0
"""Pools of worker processes that end with the process that started them, whatever ends it."""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from testctl.system import temporary
from testctl.system.netns_names import Owner, start_time
from testctl.system.process_groups import end_on_sigterm

LAST_S = 2.0
"""For workers to end what they run."""
SEMAPHORES = Path("/dev/shm")
_NAME = re.compile(r"sem\.testctl-([0-9]+)-([0-9]+)-([0-9]+)-.*")


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Workers that die with this process, and their labs with them; after an exception they are killed."""
    sweep_semaphores()
    _name_semaphores()
    # Started afresh: the threads of Arrow do not survive a fork.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(max(jobs, 1), mp_context=context, initializer=end_on_sigterm, initargs=(os.getpid(),))
    with pool:
        try:
            yield pool
        except BaseException:
            kill_workers(pool)
            pool.shutdown(wait=False, cancel_futures=True)
            raise


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
