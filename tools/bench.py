# SPDX-License-Identifier: Apache-2.0
"""Speed, printed: ratios and figures of one run.  Nothing here passes or fails.

`make bench` runs it; `python tools/bench.py NAME…` runs some of: start, flow, kernels, jobs, analysis, cluster, many,
serve, switch, stages, agents (the last three need root).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLOW = """
about: one CUBIC flow, 1 Gb/s, RTT 10 ms, MTU 1500
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, cc, cubic]
  - [hosts, kernel, "{kernel}"]
  - [hosts, capture, {capture}]
  - [all, mtu, 1500]
  - [switch:receiver, rate, 1gbit]
  - [switch:receiver, buffer, 1MB]
  - [switch, delay, 5ms]
  - [switch, backend, {backend}]
  - [switch, telemetry, {telemetry}]
  - [bulk, duration, {duration}]
repeat: {repeat}
"""

DEFAULTS = {"capture": "on", "duration": "10s", "repeat": 1, "backend": "ebpf", "telemetry": "on", "kernel": "6.12"}


def run(where: Path, jobs: int = 1, **values: Any) -> tuple[dict[str, Any], float, list[dict[str, Any]]]:
    """(summary, wall seconds, outcomes) of one run of the flow."""
    plan = where / "bench.yaml"
    plan.write_text(FLOW.format(**(DEFAULTS | values)), encoding="utf-8")
    out = Path(tempfile.mkdtemp(dir=where)) / "run"
    started = time.time()
    argv = [sys.executable, "-m", "testctl.cli.main", "run", str(plan), "--out", str(out), "--jobs", str(jobs)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    wall_s = time.time() - started
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    outcomes = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("points/*/outcome.json")]
    for outcome in outcomes:
        outcome["wall"]["command"] = started
    return json.loads((out / "summary.json").read_text(encoding="utf-8")), wall_s, outcomes


def flow(where: Path) -> None:
    """Virtual seconds a wall second, for one 10 s flow: by switch, capture off and on."""
    speeds: dict[tuple[str, str], float] = {}
    for capture in ("off", "on"):
        for kind, backend, telemetry in (
            ("netem", "netem", "off"),
            ("ebpf", "ebpf", "off"),
            ("ebpf, telemetry", "ebpf", "on"),
        ):
            _, _, (outcome,) = run(where, capture=capture, backend=backend, telemetry=telemetry)
            lab_s = outcome["wall"]["ended"] - outcome["wall"]["traffic"]
            gbps = outcome["flows"]["bulk"]["server"]["connections"][0]["bytes_received"] * 8 / 10e9
            speeds[kind, capture] = 10 / lab_s
            print(f"flow, {kind:15}, capture {capture:3}: {10 / lab_s:5.2f} virtual s / wall s   "
                  f"({lab_s:.2f} s of wall time for 10 s of traffic at {gbps:.2f} Gb/s)")  # fmt: skip
        for kind in ("ebpf", "ebpf, telemetry"):
            print(f"flow, {kind} over netem, capture {capture}: {speeds[kind, capture] / speeds['netem', capture]:.2f}")


def kernels(where: Path) -> None:
    """Each built kernel, user processes by ptrace and by seccomp: to the first packet, and 3 s of 1 Gb/s captured."""
    from testctl.lab.built import built, names
    from testctl.lab.self_test import SECCOMP, has_seccomp

    found = {name: kernel for name in names() if (kernel := built(name))}
    for name, kernel in found.items():
        for seccomp in ("off", "on") if has_seccomp(kernel.binary) else ("off",):
            os.environ[SECCOMP] = seccomp
            summary, _, (outcome,) = run(where, duration="3s", kernel=name)
            del os.environ[SECCOMP]
            wall = outcome["wall"]
            first_s, speed = wall["traffic"] - wall["started"], 3 / (wall["ended"] - wall["traffic"])
            print(f"kernel {name}, seccomp {seccomp:3}: start to first packet {first_s:.2f} s, {speed:.2f} virtual s / "
                  f"wall s at 1 Gb/s with captures, digest {summary['digest'][:16]}")  # fmt: skip


def jobs(where: Path) -> None:
    """Points a minute with two labs at once over that with one."""
    walls = []
    for count in (1, 2):
        _, wall_s, outcomes = run(where, jobs=count, duration="2s", repeat=8)
        walls.append(wall_s)
        print(f"jobs {count}: {60 * len(outcomes) / wall_s:6.1f} points a minute")
    print(f"two labs over one: {walls[0] / walls[1]:.2f} times the points a minute")


STARTS = 3


def start(where: Path) -> None:
    """From `testctl run` to the first packet, and each step of a lab's start: the fastest of some runs."""
    from testctl.lab.machine import STEPS

    walls = []
    for _ in range(STARTS):
        _, _, (outcome,) = run(where, duration="10ms")
        walls.append(outcome["wall"])
    wall = min(walls, key=lambda wall: wall["traffic"] - wall["started"])
    print(f"from the command to the first packet: {wall['traffic'] - wall['command']:.2f} s "
          f"(of that in the lab: {wall['traffic'] - wall['started']:.2f} s)")  # fmt: skip
    print(f"  {'the command, until the lab is started':40} {wall['started'] - wall['command']:6.3f} s")
    before = wall["started"]
    for step in STEPS:
        print(f"  {step:40} {wall[step] - before:6.3f} s")
        before = wall[step]


def analysis(where: Path) -> None:
    """Packets a second from captures to metrics."""
    from testctl.metrics import analyse
    from testctl.records import make_records
    from testctl.testbeds.lab import LabTestbed
    from testctl.testbeds.point_spec import spec_of

    plan = where / "analysis.yaml"
    plan.write_text(FLOW.format(**DEFAULTS), encoding="utf-8")
    from testctl.plan import load_plan

    points = load_plan(plan).points
    raw = where / "raw"
    raw.mkdir()
    asked, outcome = LabTestbed.for_points(points).run(points[0], raw)
    assert asked.id == spec_of(points[0]).id
    clock = time.perf_counter()
    records = make_records(asked, outcome, raw)
    loaded = time.perf_counter()
    analyse(records)
    ended = time.perf_counter()
    packets = records.packets.num_rows
    print(f"analysis: {packets / (ended - clock) / 1e6:.2f} M packets/s ({packets} packets: "
          f"captures to records {loaded - clock:.2f} s, metrics {ended - loaded:.2f} s)")  # fmt: skip


def cluster(where: Path) -> None:
    """Points a minute on two Dask workers over one."""
    import bench_cluster

    bench_cluster.cluster(where)


def many(where: Path) -> None:
    """A plan of 10,000 points that do nothing."""
    import bench_cluster

    bench_cluster.many(where)


def switch(where: Path) -> None:
    """The switch on the running kernel, beside a bridge and BMv2."""
    import bench_switch

    bench_switch.switch(where)


def stages(where: Path) -> None:
    """ns a packet in each stage of the switch's program."""
    import bench_stages

    bench_stages.stages(where)


def agents(where: Path) -> None:
    """A rack's agents: Apply on eight at once, and points an hour."""
    import bench_agents

    bench_agents.agents(where)


def serve(where: Path) -> None:
    """Opening and zooming a point of a million packets in a browser."""
    import bench_serve

    bench_serve.serve(where)


BENCHES: dict[str, Callable[[Path], None]] = {
    "start": start, "flow": flow, "kernels": kernels, "jobs": jobs, "analysis": analysis, "cluster": cluster,
    "many": many, "serve": serve, "switch": switch, "stages": stages, "agents": agents,
}  # fmt: skip
ROOT = ("switch", "stages", "agents")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    if wrong := [name for name in names if name not in BENCHES]:
        parser.error(f"no bench named {', '.join(wrong)}; there are: {', '.join(BENCHES)}")
    for name in names or list(BENCHES):
        if name in ROOT and os.geteuid() != 0:
            print(f"{name}: left out: needs root")
            continue
        with tempfile.TemporaryDirectory(prefix="testctl-bench-") as where:
            BENCHES[name](Path(where))


if __name__ == "__main__":
    main()
