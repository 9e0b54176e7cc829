# SPDX-License-Identifier: Apache-2.0
"""Speed, printed: ratios and figures of one run.  Nothing here passes or fails.

`make bench` runs it; `python tools/bench.py NAME…` runs some of: start, flow, kernels, jobs, analysis, rules, cluster,
many, several, edit, serve, switch, stages, agents (the last three need root).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_flow import DEFAULTS, FLOW


def ran(where: Path, jobs: int, program: list[str], **values: Any) -> tuple[Path, float, float, str]:
    """(results, when it was started, wall seconds, output) of `testctl run` of the flow."""
    plan = where / "bench.yaml"
    plan.write_text(FLOW.format(**(DEFAULTS | values)), encoding="utf-8")
    out = Path(tempfile.mkdtemp(dir=where)) / "run"
    started = time.time()
    argv = [sys.executable, *program, "run", str(plan), "--out", str(out), "--jobs", str(jobs)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    wall_s = time.time() - started
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return out, started, wall_s, done.stdout


def run(where: Path, **values: Any) -> tuple[dict[str, Any], dict[str, float]]:
    """(summary, when its steps were) of a run of one point."""
    out, started, _, _ = ran(where, 1, ["-m", "testctl.cli.main"], **values)
    (outcome,) = out.glob("points/*/outcome.json")
    wall: dict[str, float] = json.loads(outcome.read_text(encoding="utf-8"))["wall"]
    return json.loads((out / "summary.json").read_text(encoding="utf-8")), wall | {"command": started}


def kernels(where: Path) -> None:
    """Each built kernel, user processes by ptrace and by seccomp: to the first packet, and 3 s of 1 Gb/s captured."""
    from testctl.lab.built import built, names
    from testctl.lab.self_test import SECCOMP, has_seccomp

    found = {name: kernel for name in names() if (kernel := built(name))}
    for name, kernel in found.items():
        for seccomp in ("off", "on") if has_seccomp(kernel.binary) else ("off",):
            os.environ[SECCOMP] = seccomp
            summary, wall = run(where, duration="3s", kernel=name)
            del os.environ[SECCOMP]
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
    _, _, wall_s, output = ran(where, jobs, ["-c", ACCOUNT], repeat=repeat, **values)
    own, others = json.loads(output.splitlines()[-1])
    return wall_s, own, others


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

    walls = [run(where, duration="10ms")[1] for _ in range(STARTS)]
    wall = min(walls, key=lambda wall: wall["traffic"] - wall["started"])
    print(f"from the command to the first packet: {wall['traffic'] - wall['command']:.2f} s "
          f"(of that in the lab: {wall['traffic'] - wall['started']:.2f} s)")  # fmt: skip
    print(f"  {'the command, until the lab is started':40} {wall['started'] - wall['command']:6.3f} s")
    before = wall["started"]
    for step in STEPS:
        print(f"  {step:40} {wall[step] - before:6.3f} s")
        before = wall[step]


BENCHES: dict[str, Callable[[Path], None] | str] = {
    "start": start, "flow": "bench_flow", "kernels": kernels, "jobs": jobs, "analysis": "bench_flow",
    "rules": "bench_rules", "cluster": "bench_cluster", "many": "bench_cluster", "several": "bench_partitions",
    "edit": "bench_edit", "serve": "bench_serve", "switch": "bench_switch", "stages": "bench_stages",
    "agents": "bench_agents",
}  # fmt: skip
"""A function of this file, or the module that has one of that name."""
ROOT = ("switch", "stages", "agents")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    if wrong := [name for name in names if name not in BENCHES]:
        parser.error(f"no bench named {', '.join(wrong)}; there are: {', '.join(BENCHES)}")
    checkout = Path(__file__).parents[1]
    sys.path += [str(checkout), str(checkout / "plugins" / "rack" / "tools")]  # of bench_cluster, bench_agents
    for name in names or BENCHES:
        if name in ROOT and os.geteuid() != 0:
            print(f"{name}: left out: needs root")
            continue
        found = BENCHES[name]
        bench = getattr(importlib.import_module(found), name) if isinstance(found, str) else found
        with tempfile.TemporaryDirectory(prefix="testctl-bench-") as where:
            bench(Path(where))


if __name__ == "__main__":
    main()
