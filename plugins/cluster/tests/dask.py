# SPDX-License-Identifier: Apache-2.0
"""A Dask scheduler and workers as processes on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
START_S = 120


@dataclass
class Dask:
    """Ended, all of it, with the context that made it."""

    where: Path
    address: str = ""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, what: str, *words: str, **environment: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.where / f"{what}-{len(self.running)}.log"
        argv = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words]
        env = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.where)} | environment
        with log.open("wb") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=out, env=env, cwd=self.where)
        self.running.append(process)
        return process, log

    def worker(self, *more: str, **environment: str) -> subprocess.Popen[bytes]:
        """One more, of one thread and without a nanny, so that who kills it kills it for good."""
        words = (self.address, *more, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        local = self.where / f"worker-{len(self.running)}"
        process, log = self.start("worker", *words, "--local-directory", str(local), **environment)
        said(process, log, r"Registered to:\s+(t\w+://\S+)")
        return process

    def end(self) -> None:
        for process in reversed(self.running):
            process.kill()
            process.wait()


def said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a process wrote that matches, as soon as it did."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace")):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"{pattern} was not printed:\n{log.read_text(encoding='utf-8', errors='replace')}")


@contextmanager
def dask(where: Path, workers: int = 1, protocol: str = "tcp", **environment: str) -> Iterator[Dask]:
    found = Dask(where)
    try:
        words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--protocol", protocol)
        process, log = found.start("scheduler", *words, **environment)
        found.address = said(process, log, r"Scheduler at:\s+(t\w+://\S+)")
        for _ in range(workers):
            found.worker(**environment)
        yield found
    finally:
        found.end()
