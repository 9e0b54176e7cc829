# SPDX-License-Identifier: Apache-2.0
"""Plans that tests run in the lab: a whole one by the command, a single point in this process."""

from __future__ import annotations

from pathlib import Path

from testctl.execution.point import measure
from testctl.plan import load_plan
from testctl.records import Records, make_records
from testctl.results import PointResult, Run, load_run
from testctl.testbeds.lab import LabTestbed

from tests.cli_commands import call


def run_of(where: Path, plan: Path | str, *sets: str, out: str = "run", code: int = 0) -> Run:
    """The run of a plan's file or text as --set changes it; `where/out` is its directory."""
    if isinstance(plan, str):
        (where / "plan.yaml").write_text(plan, encoding="utf-8")
        plan = where / "plan.yaml"
    words = [word for given in sets for word in ("--set", given)]
    call(where, "run", str(plan), "--out", out, *words, code=code)
    return load_run(where / out)


def measured(where: Path, plan: str, *, keep_captures: bool = False) -> PointResult:
    """The one point of a plan's text."""
    (point,) = load_plan(plan).points
    return measure(LabTestbed.for_points([point]), point, where, keep_captures=keep_captures)


def recorded(where: Path, plan: str) -> Records:
    """The records of the one point of a plan's text, which is not judged; its files are in `where`."""
    where.mkdir(parents=True)
    (point,) = load_plan(plan).points
    asked, outcome = LabTestbed.for_points([point]).run(point, where)
    assert (outcome.error, outcome.skip) == ("", "")
    return make_records(asked, outcome, where)


def records_of(result: PointResult) -> Records:
    assert result.records is not None, result.reason
    return result.records
