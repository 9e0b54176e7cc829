# SPDX-License-Identifier: Apache-2.0
"""What a run states of itself beside its points: the testbed, what was left out, and the noise of the machine."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from testctl.noise import store
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


def command_without(plan: Plan, lacking: Collection[tuple[str, str]]) -> str:
    """The command that leaves out the tuples that set these parameters of these entities; "" where none does."""
    by = {(target.entity, target.param): (a.entity, a.param, "") for a in plan.assignments for target in a.targets}
    if not lacking or any(one not in by for one in lacking):
        return ""
    return command_of(replace(plan, left_out=(*plan.left_out, *sorted({by[one] for one in lacking}))))


def from_here(path: Path | str) -> str:
    """A path, from this directory on where it is below."""
    with suppress(ValueError):
        return str(Path(path).absolute().relative_to(Path.cwd()))
    return str(path)


def statement(plan: Plan, results: Path, jobs: int) -> dict[str, Any]:
    """For summary.json: "left_out", "dropped" where there are any; outside of the lab "testbed", "jobs" and "noise"."""
    said: dict[str, Any] = {}
    if plan.left_out:
        said["left_out"] = [list(one) for one in plan.left_out]
    if plan.dropped:
        said["dropped"] = list(plan.dropped)
    if plan.testbed != LAB:
        said |= {"testbed": plan.testbed, "jobs": jobs, "noise": store.newest(results, plan.testbed)}
    return said
