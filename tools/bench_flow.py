# SPDX-License-Identifier: Apache-2.0
"""One flow in the lab, with and without instruments, beside ns-3; and its records, for the bench of the analysis."""

from __future__ import annotations

import itertools
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.plan import load_plan
from testctl.testbeds.lab import LabTestbed

FLOW = """
about: one CUBIC flow, 1 Gb/s, RTT 10 ms, MTU 1500
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, cc, cubic]
  - [hosts, kernel, "{kernel}"]
  - [hosts, capture, {capture}]
  - [hosts, tcp_info, {tcp_info}]
  - [all, mtu, 1500]
  - [switch:receiver, rate, {rate}]
  - [switch:receiver, buffer, 1MB]
  - [switch, delay, 5ms]
  - [switch, backend, {backend}]
  - [switch, telemetry, {telemetry}]
  - [bulk, duration, {duration}]
repeat: {repeat}
"""

DEFAULTS = {"capture": "on", "tcp_info": "10ms", "duration": "10s", "repeat": 1, "backend": "ebpf", "telemetry": "on",
            "kernel": "6.12", "rate": "1gbit"}  # fmt: skip
NOTHING = {"capture": "off", "tcp_info": "off", "telemetry": "off"}

RUNS: tuple[tuple[str, dict[str, str], float | None], ...] = (
    ("1 Gb/s, captures, tcp_info, telemetry", {}, 2.5),
    ("1 Gb/s, captures, tcp_info", {"telemetry": "off"}, None),
    ("1 Gb/s, telemetry", {"capture": "off", "tcp_info": "off"}, None),
    ("1 Gb/s, nothing recorded", NOTHING, 4.0),
    ("1 Gb/s, netem, nothing recorded", {**NOTHING, "backend": "netem"}, None),
    ("100 Mb/s, captures, tcp_info, telemetry", {"rate": "100mbit"}, 15.0),
)
"""What runs, and the virtual seconds a wall second that are wanted of it on an idle machine."""
SECONDS = 10
NS3_SECONDS = 3
NS3 = Path(__file__).with_name("bench_ns3.cc")
NS3_HEADER = Path("/usr/include/ns3/core-module.h")
NS3_LIBRARIES = [f"-lns3-{name}" for name in ("applications", "point-to-point", "internet", "network", "core")]


def in_lab(where: Path, **values: Any) -> tuple[PointSpec, Outcome, float]:
    """(what was asked, the outcome, processor seconds of the lab) of the flow; its raw files lie in `where`."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    plan = where.with_suffix(".yaml")
    plan.write_text(FLOW.format(**(DEFAULTS | values)), encoding="utf-8")
    points = load_plan(plan).points
    testbed = LabTestbed.for_points(points)
    before = children_s()
    asked, outcome = testbed.run(points[0], where)
    if outcome.error or outcome.skip:
        raise SystemExit(outcome.error or outcome.skip)
    return asked, outcome, children_s() - before


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def flow(where: Path) -> None:
    """Virtual seconds a second of wall time and of processor time, by instruments and rate; and of ns-3."""
    speeds: list[float] = []
    for name, values, wanted in RUNS:
        _, _, start_s = in_lab(where / "raw", duration="10ms", **values)
        _, outcome, cpu_s = in_lab(where / "raw", duration=f"{SECONDS}s", **values)
        wall_s = outcome.wall["ended"] - outcome.wall["traffic"]
        speeds.append(SECONDS / (cpu_s - start_s))
        said = f" (wanted: {wanted:g})" if wanted else ""
        print(f"flow, {name:40}: {SECONDS / wall_s:5.2f} virtual s / wall s{said}, "
              f"{speeds[-1]:5.2f} / s of processor time")  # fmt: skip
    print(f"flow, with all instruments over nothing recorded: {speeds[0] / speeds[3]:.2f} (processor time)")
    ns3(where, speeds[0])


def ns3(where: Path, lab: float) -> None:
    """The same flow in ns-3, where it is installed."""
    if not NS3_HEADER.is_file():
        print("flow, ns-3: left out: apt-get install libns3-dev")
        return
    program = where / "ns3"
    subprocess.run(["g++", "-O2", "-w", "-o", str(program), str(NS3), *NS3_LIBRARIES], check=True)
    before, started = children_s(), time.monotonic()
    done = subprocess.run([str(program), "1000", str(NS3_SECONDS)], capture_output=True, text=True, check=True)
    wall_s, cpu_s = time.monotonic() - started, children_s() - before
    gbps = int(done.stdout) * 8 / NS3_SECONDS / 1e9
    print(f"flow, ns-3, 1 Gb/s, nothing recorded: {NS3_SECONDS / wall_s:.3f} virtual s / wall s, "
          f"{NS3_SECONDS / cpu_s:.3f} / s of processor time ({gbps:.2f} Gb/s in {NS3_SECONDS} s)")  # fmt: skip
    print(f"flow, the lab with all instruments over ns-3 with none: {lab / (NS3_SECONDS / cpu_s):.0f} (processor time)")


MILLIONS = "27100ms"
"""The flow with more than 10 million records."""


def analysis(where: Path) -> None:
    """Packets a second from captures to metrics, and the memory for 10 million packets, in a process of its own."""
    asked, outcome, _ = in_lab(where / "raw", duration=MILLIONS)
    for name, of in (("point", asked), ("outcome", outcome)):
        (where / f"{name}.json").write_text(json.dumps(of.to_json()), encoding="utf-8")
    subprocess.run([sys.executable, __file__, str(where)], check=True)


def analyse_here(where: Path) -> None:
    """The records and metrics of what analysis() ran, timed."""
    from testctl.metrics import analyse
    from testctl.records import make_records

    asked = PointSpec.from_json(json.loads((where / "point.json").read_text(encoding="utf-8")))
    outcome = Outcome.from_json(json.loads((where / "outcome.json").read_text(encoding="utf-8")))
    used = [_own_s()]
    records = make_records(asked, outcome, where / "raw")
    used.append(_own_s())
    records.save(where / "point")
    used.append(_own_s())
    analyse(records)
    used.append(_own_s())
    memory_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    packets = records.packets.num_rows
    steps = [[after - before for before, after in zip(*pair, strict=True)] for pair in itertools.pairwise(used)]
    all_s, system_s = (sum(step[which] for step in steps) for which in (0, 1))
    print(f"analysis: {packets / all_s / 1e6:.2f} M packets / s of processor time (wanted: 5), "
          f"{packets / (all_s - system_s) / 1e6:.2f} without the system's ({packets / 1e6:.1f} M packets)")  # fmt: skip
    names = ("captures and telemetry to records", "records to Parquet", "records to metrics")
    for name, (both_s, by_system_s) in zip(names, steps, strict=True):
        print(f"  {name:34} {both_s:5.2f} s, {by_system_s:.2f} s of it the system's, "
              f"{both_s / packets * 1e9:4.0f} ns a packet")  # fmt: skip
    print(f"analysis: {memory_gib:.2f} GiB of memory at the most for {packets / 1e6:.1f} M packets (wanted: below 2), "
          f"{(where / 'point' / 'packets.parquet').stat().st_size / 2**20:.0f} MiB of Parquet")  # fmt: skip


def _own_s() -> tuple[float, float]:
    """Processor seconds of this process so far: all, and the system's."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_stime


if __name__ == "__main__":
    analyse_here(Path(sys.argv[1]))
