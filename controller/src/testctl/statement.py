# SPDX-License-Identifier: Apache-2.0
"""What a run states of itself beside its points: the testbed, what was left out, and the noise of the machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from testctl import noise
from testctl.plan import Plan

LAB = "lab"


def command_of(plan: Plan) -> str:
    """The command that does it again; "" where the plan alone says it."""
    if plan.testbed == LAB and not plan.left_out:
        return ""
    words = ["testctl", "run", plan.file, "--testbed", plan.testbed]
    words += [word for given in plan.overrides for word in ("--set", given)]
    words += [word for entity, parameter, _ in plan.left_out for word in ("--without", f"{entity}.{parameter}")]
    return shlex.join(words)


def statement(plan: Plan, results: Path, jobs: int) -> dict[str, Any]:
    """For summary.json: "left_out" where there is any, and outside of the lab "testbed", "jobs" and "noise"."""
    said: dict[str, Any] = {}
    if plan.left_out:
        said["left_out"] = [list(one) for one in plan.left_out]
    if plan.testbed != LAB:
        said |= {"testbed": plan.testbed, "jobs": jobs, "noise": noise.newest(results, plan.testbed)}
    return said
