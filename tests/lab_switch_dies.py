# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: a point whose switch's agent is killed while traffic passes.

POINT names its JSON, RAW a directory of the machine.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, os.environ["TESTCTL_ROOT"] + "/lab/boot")

import first_process
from testctl.core.point import PointSpec
from testctl.system.subprocesses import run
from testctl.testbeds import network, point_runner
from testctl.testbeds.agents import LocalAgents
from testctl.testbeds.traffic_time import VirtualTime


def main() -> None:
    asked = PointSpec.from_json(json.loads(Path(os.environ["POINT"]).read_text(encoding="utf-8")))
    for folder in (first_process.RUN, Path("/run/tmp")):
        folder.mkdir()
    os.environ["TMPDIR"] = "/run/tmp"
    network.build(asked.topology, asked.backend, lambda argv, text: run(argv, stdin=text))
    pipes, pids = first_process.forked_agents(asked, Path(os.environ["RAW"]), asked.topology.entities)
    switch = pids[list(pipes).index(asked.topology.switches[0])]
    agents = LocalAgents(pipes)
    hooks = point_runner.Hooks(hold=lambda: os.kill(switch, signal.SIGKILL))
    runner = point_runner.PointRun(asked, agents, VirtualTime(time.time_ns() + 20 * 10**9), hooks)
    outcome = point_runner.outcome_of(runner)
    print(json.dumps(outcome.error))
    print("flows that ended:", *outcome.flows)


if __name__ == "__main__":
    main()
