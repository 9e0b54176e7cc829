# SPDX-License-Identifier: Apache-2.0
"""Speed, printed: ratios and figures of one run.  Nothing here passes or fails.

`make bench` runs it; `python tools/bench.py NAME…` runs some of: start, flow, kernels, jobs, analysis, rules, cluster,
many, several, edit, serve, switch, stages, agents (the last three need root).
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

import bench_flow
from bench_flow import DEFAULTS, FLOW


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
    """One flow, with and without instruments, beside ns-3."""
    bench_flow.flow(where)


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


ACCOUNT = """
import json, resource, sys

from testctl.cli.main import main

try:
    main()
finally:
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps([own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime]))
"""
"""`testctl`, whose last line is the processor time of its own and of all that it started."""


def cost(where: Path, repeat: int, jobs: int, **values: Any) -> tuple[float, float, float]:
    """Of a run of the flow: wall seconds, processor seconds of the command and of all that it started."""
    plan = where / "cost.yaml"
    plan.write_text(FLOW.format(**(DEFAULTS | values | {"repeat": repeat})), encoding="utf-8")
    out = Path(tempfile.mkdtemp(dir=where)) / "run"
    argv = [sys.executable, "-c", ACCOUNT, "run", str(plan), "--out", str(out), "--jobs", str(jobs)]
    started = time.time()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    own, others = json.loads(done.stdout.splitlines()[-1])
    return time.time() - started, own, others


POINTS = 24


def jobs(where: Path) -> None:
    """Points a minute with one and two labs at once, the processor time of a point, and what many processors give.

    The model: a point takes its processor time on any processor, as points share no lock and no file; the command
    itself, which judges each point when it ends, is the one thing that all of them share.
    """
    values = {"capture": "off", "duration": "100ms"}
    _, own, others = cost(where, 1, 1, **values)
    walls = []
    for count in (1, 2):
        wall_s, all_own, all_others = cost(where, POINTS, count, **values)
        walls.append(wall_s)
        point_s, shared_s = (all_others - others) / (POINTS - 1), max(all_own - own, 0.01) / (POINTS - 1)
        print(f"jobs {count}: {60 * POINTS / wall_s:6.1f} points a minute; processor time: {point_s:.2f} s a point, "
              f"{shared_s:.3f} s a point in the command, {own + others - point_s:.1f} s in all beside")  # fmt: skip
    print(f"two labs over one: {walls[0] / walls[1]:.2f} times the points a minute")
    for count in (1, 2, 16, 64):
        most = 60 / shared_s
        print(f"model, {count:2} processors: {min(60 * count / (point_s + shared_s), most):5.0f} points a minute")


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
    """Packets a second from captures to metrics, and memory."""
    bench_flow.analysis(where)


def rules(where: Path) -> None:
    """What rules add to the analysis of 10 million packets."""
    import bench_rules

    bench_rules.rules(where)


def cluster(where: Path) -> None:
    """Points a minute on two Dask workers over one."""
    import bench_cluster

    bench_cluster.cluster(where)


def several(where: Path) -> None:
    """Several kernels of one lab, on one processor and on two."""
    import bench_partitions

    bench_partitions.several(where)


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
    sys.path.append(str(Path(__file__).parents[1] / "plugins" / "rack" / "tools"))
    import bench_agents

    bench_agents.agents(where)


def edit(where: Path) -> None:
    """A changed line of a kernel's tree: the rebuild, and the first result."""
    import bench_edit

    bench_edit.edit(where)


def serve(where: Path) -> None:
    """Opening and zooming a point of a million packets in a browser."""
    import bench_serve

    bench_serve.serve(where)


BENCHES: dict[str, Callable[[Path], None]] = {
    "start": start, "flow": flow, "kernels": kernels, "jobs": jobs, "analysis": analysis, "rules": rules,
    "cluster": cluster, "many": many, "several": several, "edit": edit, "serve": serve, "switch": switch,
    "stages": stages, "agents": agents,
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
