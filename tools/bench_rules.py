# SPDX-License-Identifier: Apache-2.0
"""What rules add to `testctl analyse` of a capture of 10 million packets."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

from bench_flow import in_lab

LENGTH = "81000ms"
TIMES = 2


def rules(where: Path) -> None:
    """A host's capture of a single connection, each time in a process of its own, with and without rules in turn."""
    in_lab(where / "raw", duration=LENGTH, tcp_info="off", telemetry="off")
    capture = where / "raw" / "sender" / "capture" / "capture.pcap"
    best: dict[str, list[float]] = {}
    for turn in range(TIMES):
        for way in ("without", "with"):
            argv = [sys.executable, __file__, str(capture), way, str(where / f"{way}{turn}")]
            done = subprocess.run(argv, check=True, capture_output=True, text=True)
            used = json.loads(done.stdout.splitlines()[-1])
            best[way] = [min(pair) for pair in zip(used, best.get(way, used), strict=True)]
    names = ("s of processor time", "s", "GiB of memory")
    for name, bare, judged in zip(names, best["without"], best["with"], strict=True):
        print(f"rules: {judged:.2f} {name} with all, {bare:.2f} without: {judged / bare:.2f} times (wanted: 1.5)")


def analyse_here(capture: Path, way: str, out: Path) -> None:
    """The analysis of `testctl analyse`; prints its processor time, its time and its memory."""
    from testctl.cli.analyse import analysed
    from testctl.results import RunWriter

    started = time.monotonic()
    with mock.patch("testctl.rules.judge.rules", return_value={}) if way == "without" else nullcontext():
        analysed([capture], None, (), lambda need: RunWriter.create_at(out, need=need))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([used.ru_utime + used.ru_stime, time.monotonic() - started, used.ru_maxrss / 2**20]))


if __name__ == "__main__":
    analyse_here(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
