# SPDX-License-Identifier: Apache-2.0
"""A testbed of made-up captures: points with real records, metrics and figures, without a lab or root."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from testctl.core.outcome import Entity, Outcome
from testctl.core.point import PointSpec
from testctl.execution.options import Options
from testctl.execution.point import run_one
from testctl.execution.pool import Finished
from testctl.execution.run import run_plan
from testctl.metrics import metric_names
from testctl.plan import Plan, Point, load_plan
from testctl.report import Progress
from testctl.results import Run
from testctl.testbeds.point_spec import spec_of

from controller.tests.support.synthetic import T0_NS, bulk, write_point

PLAN = """
about: made-up captures
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [reno, cubic]]
  - [bulk, duration, 100ms]
expect:
  - {name: enough packets, metric: packets_sent, min: %s}
figures:
  - {title: throughput, when: {hosts.cc: reno}}
  - {title: sequence number, kind: sequence, when: {hosts.cc: cubic}}
"""
_BROKEN = "beyond-window ecn-ect-unagreed initial-window slow-start-growth timestamp-echo window-probe-answered"
PLAN += "allow:\n" + "".join(f"  - {{rule: {rule}, reason: the captures are made up}}\n" for rule in _BROKEN.split())
PACKETS = {"reno": 60, "cubic": 90}
FEW, SOME, MANY = 1, 70, 1000
"""Packets that all points have, that only cubic has, and that none has."""
LONG_NS = 100_000_000
NO_SAMPLES = b"TGI1" + (320).to_bytes(4, "little")
"""A file of tcp_info without a sample: an empty table, of hosts that have names."""


@dataclass(frozen=True)
class Synthetic:
    """Every point is a steady transfer, the same each time, of as many packets as its congestion control says."""

    key: str = "synthetic"

    def code_key(self, point: Point) -> str:
        return self.key

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        asked = spec_of(point)
        count = PACKETS[str(point.settings["sender"]["cc"])]
        captures = bulk(count, rate_bps=100e6)
        with tempfile.TemporaryDirectory() as made:
            write_point(Path(made), captures)
            for host in captures:
                place = workdir / host / "capture"
                place.mkdir(parents=True)
                shutil.copy(Path(made) / "raw" / host / "capture.pcap", place)
                (workdir / host / "tcp_info.bin").write_bytes(NO_SAMPLES)
        return asked, Outcome(
            t0_ns=T0_NS,
            end_ns=T0_NS + LONG_NS,
            kernel="6.12.0",
            addresses={"sender": "10.0.0.1", "receiver": "10.0.0.2"},
            entities={name: Entity("host") for name in ("sender", "receiver")},
        )


class Here:
    """A pool that is this process (testctl.execution.pool.Pool)."""

    def work(self, testbed: Synthetic, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        for point in points:
            yield point, *run_one(testbed, point, run, keep_captures)


def plan(wanted: int = FEW) -> Plan:
    return load_plan(PLAN % wanted, metrics=metric_names())


def go(
    results: Path,
    *,
    wanted: int = FEW,
    resume: bool = False,
    bed: Synthetic | None = None,
    out: Path | None = None,
    captures: bool = False,
) -> tuple[Run, str]:
    """A run of the plan in this process, and its progress messages."""
    said = Console(file=io.StringIO(), width=500)
    asked = plan(wanted)
    progress = Progress(len(asked.points), said)
    options = Options(results, out=out, resume=resume, keep_captures=captures)
    run = run_plan(asked, bed or Synthetic(), options, progress, pool=Here())
    assert isinstance(said.file, io.StringIO)
    return run, said.file.getvalue()
