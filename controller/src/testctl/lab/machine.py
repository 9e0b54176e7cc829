# SPDX-License-Identifier: Apache-2.0
"""One lab: a User-Mode-Linux process in virtual time that runs one point and ends."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl import paths
from testctl.lab.processor import own_processor
from testctl.lab.sessions import end, starting
from testctl.run import interact, start, wait

BOOT_NS = 1_700_000_000 * 10**9
"""The virtual time at which every lab boots."""

T0_NS = BOOT_NS + 20 * 10**9 + 333_333
"""The virtual time at which every point's traffic time starts: setting up takes less, and
waiting for it costs nothing.  It lies between two ticks of the kernel: on one, whether a
timer fires a nanosecond sooner or later depends on what came before."""

MEMORY_MB = 1024
LAST_WORDS = 25  # lines


def run_point(
    point: dict[str, Any], kernel: Path, workdir: Path, wall_limit_s: float, program: Path | None = None
) -> dict[str, Any]:
    """Boot a lab, run a point in it, and return the outcome (see testbeds/point.py).

    program: the compiled one that the switches load, if any.  Raw files are written below
    `workdir`.  Raises TestbedError with the lab's last words when it crashes, says nothing or
    runs for longer than wall_limit_s.
    """
    with _directory() as home, own_processor() as cpu:
        outcome = home / "outcome.json"
        argv = _command(home, kernel, _spec(home, point, workdir, outcome, "point"), program, cpu)
        log = home / "console.log"
        with starting() as sessions:
            process = start(argv, log=log, env=_environment(home))
            sessions.add(process.pid)
        try:
            ended = wait(process, wall_limit_s)
        finally:
            end(process)
        if not ended:
            raise TestbedError(f"the lab ran for more than {wall_limit_s:g} s of wall time and was ended{_words(log)}")
        if not outcome.is_file():
            raise TestbedError(f"the lab ended without a result (exit {process.returncode}){_words(log)}")
        result: dict[str, Any] = json.loads(outcome.read_text(encoding="utf-8"))
        result["wall"] = _wall(home)
        return result


def _wall(home: Path) -> dict[str, float]:
    """When, by the wall clock, the lab was started, its traffic began, and it ended."""
    marks = {"started": "lab.json", "traffic": "traffic", "ended": "outcome.json"}
    return {what: (home / name).stat().st_mtime for what, name in marks.items() if (home / name).exists()}


def shell(point: dict[str, Any], kernel: Path, program: Path | None = None) -> int:
    """A shell at the user's terminal, inside a lab with the point's topology."""
    with _directory() as home:
        spec = _spec(home, point, home / "raw", home / "outcome.json", "shell")
        return interact(_command(home, kernel, spec, program), env=_environment(home))


def _spec(home: Path, point: dict[str, Any], workdir: Path, outcome: Path, mode: str) -> Path:
    spec = {
        "mode": mode,
        "workdir": str(workdir.resolve()),
        "outcome": str(outcome),
        "t0_ns": T0_NS,
        "seed": point["seed"],
        "traffic": str(home / "traffic"),
        "point": point,
    }
    path = home / "lab.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory for the lab's script, sockets and console, gone afterwards.

    Not below /dev, which the lab mounts anew.
    """
    home = Path(tempfile.mkdtemp(prefix="testctl-lab-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _environment(home: Path) -> dict[str, str]:
    """The lab's memory is a file in TMPDIR, deleted once it is open: in memory where there is room."""
    fast = Path("/dev/shm")
    roomy = os.access(fast, os.W_OK | os.X_OK) and shutil.disk_usage(fast).free > 2 * MEMORY_MB << 20
    return {
        "TMPDIR": str(fast if roomy else home),
        "HOME": str(home),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "TERM": os.environ.get("TERM", "dumb"),
    }


def _command(home: Path, kernel: Path, spec: Path, program: Path | None, cpu: int | None = None) -> list[str]:
    """The kernel and its command line; it dies with the process that starts it, and stays on its processor, if any."""
    init = home / "init"
    script = paths.lab() / "boot" / "init.py"
    init.write_text(f"#!/bin/sh\nexec {_quote(sys.executable)} {_quote(str(script))}\n", encoding="utf-8")
    init.chmod(0o755)
    return [
        "setpriv", "--pdeathsig", "KILL",
        *([] if cpu is None else ["taskset", "--cpu-list", str(cpu)]),
        str(kernel),
        f"mem={MEMORY_MB}M",
        "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw",
        f"init={init}",
        "con0=fd:0,fd:1", "con=null", "quiet", "panic=-1",
        f"uml_dir={home}", "umid=lab",
        "time-travel=inf-cpu", f"time-travel-start={BOOT_NS}",
        "testctl_random.seed=1",
        "GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS=0",
        f"TESTCTL_LAB={spec}", f"TESTCTL_ROOT={paths.root()}", "PYTHONHASHSEED=0",
        *([f"TESTCTL_PROGRAM={program}"] if program else []),
    ]  # fmt: skip


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _words(log: Path) -> str:
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if not said:
        return "; it said nothing"
    return "; its last words:\n  " + "\n  ".join(said[-LAST_WORDS:])
