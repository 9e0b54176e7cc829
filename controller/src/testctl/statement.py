# SPDX-License-Identifier: Apache-2.0
"""What a run states of itself beside its points: the testbed, what was left out, and the noise of the machine."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from testctl import noise
from testctl.plan import Plan
from testctl.plan.load import TEXT_NAME

LAB = "lab"


def command_of(plan: Plan) -> str:
    """The command that does it again, in this directory; "" where the plan is no file."""
    if plan.testbed == LAB and plan.file == TEXT_NAME:
        return ""
    words = ["testctl", "run", from_here(plan.file), *([] if plan.testbed == LAB else ["--testbed", plan.testbed])]
    words += [word for given in plan.overrides for word in ("--set", given)]
    words += [word for entity, parameter, _ in plan.left_out for word in ("--without", f"{entity}.{parameter}")]
    return shlex.join(words)


def from_here(path: Path | str) -> str:
    """A path, from this directory on where it is below."""
    with suppress(ValueError):
        return str(Path(path).absolute().relative_to(Path.cwd()))
    return str(path)


def statement(plan: Plan, results: Path, jobs: int) -> dict[str, Any]:
    """For summary.json: "left_out" where there is any, and outside of the lab "testbed", "jobs" and "noise"."""
    said: dict[str, Any] = {}
    if plan.left_out:
        said["left_out"] = [list(one) for one in plan.left_out]
    if plan.testbed != LAB:
        said |= {"testbed": plan.testbed, "jobs": jobs, "noise": noise.newest(results, plan.testbed)}
    return said
