# SPDX-License-Identifier: Apache-2.0
"""A run from elsewhere, given to every command that takes a run: nothing of its plan is executed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from testctl.cli.main import _command
from testctl.execution.finish import complete
from testctl.execution.options import Options
from testctl.metrics import metric_names
from testctl.plan import load_plan
from testctl.results import PointResult, RunWriter, write_point

from tests.cli_commands import call, commands, takes

pytestmark = [pytest.mark.long, pytest.mark.lab, pytest.mark.timeout(900)]

OWNED = "owned"
"""The file that the plan's command lines write, in the machine's directory that a lab mounts for them."""
PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, generator, [tgen, command]]
  - [bulk, client, "sh -c 'mount -t hostfs none /mnt -o DIRECTORY; touch /mnt/owned DIRECTORY/owned'"]
  - [bulk, server, "sh -c 'mount -t hostfs none /mnt -o DIRECTORY; touch /mnt/owned DIRECTORY/owned'"]
  - [bulk, duration, 50ms]
expect:
  - {metric: packets_sent, at_most: 0.001, than: {bulk.generator: command}, when: {bulk.generator: tgen}}
"""
HARMLESS = """
topology: pair
flows: {bulk: sender -> receiver}
tuples: [[bulk, bytes, 10kB]]
"""
RUN = {"RUN", "[RUN2]", "RUN|FILE", "A", "[B]"}
"""The metavars of a run's directory."""
POINT = {"POINT", "[POINT]", "[POINT|FILE]"}
PLANS = {"PLAN", "[PLAN]", "[PLAN…]"}
UNRELATED = {"upload"}
"""Needs a server of InfluxDB before it reads the run."""


def words(command: Any, values: dict[str, str]) -> Iterator[list[str]]:
    """The command's arguments; with each of its options for a run in turn, or none."""
    given = [values[one.metavar] for one in command.params if one.param_type_name == "argument"]
    options = [one.opts[0] for one in command.params if one.param_type_name == "option" and one.metavar in RUN]
    if any(one.metavar in RUN for one in command.params if one.param_type_name == "argument"):
        yield given
    yield from ([*given, option, values["RUN"]] for option in options)


TAKING = [
    (path, command) for path, command in commands(_command()) if path[0] not in UNRELATED and takes(command, *RUN)
]


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, list[str]]:
    """A run whose points are passed off as measured, and their ids."""
    text = PLAN.replace("DIRECTORY", str(tmp_path))
    plan = load_plan(text.encode(), metrics=metric_names())
    writer = RunWriter.create_at(tmp_path / "runs" / "run", need=0)
    writer.write_plan(text, {"points": [point.to_json() for point in plan.points]})
    for point in plan.points:
        packets = 1000 if point.flows[0].generator == "tgen" else 500
        result = PointResult(point=point.to_json(), verdict="pass", metrics={"bulk": {"packets_sent": packets}})
        write_point(writer.path, result)
    complete(plan, writer, Options(tmp_path), datetime.now(UTC), 1.0)
    (tmp_path / "harmless.yaml").write_text(HARMLESS)
    return tmp_path / "runs" / "run", [point.id for point in plan.points]


def test_the_commands_are_found() -> None:
    found = {path[0] for path, _ in TAKING}
    assert found >= {"show", "report", "series", "compare", "shrink", "replay", "run", "nightly"}


@pytest.mark.parametrize(("path", "command"), TAKING, ids=["-".join(path) for path, _ in TAKING])
def test_no_command_executes_what_a_run_s_plan_says(
    path: tuple[str, ...], command: Any, hostile: tuple[Path, list[str]], tmp_path: Path
) -> None:
    run, points = hostile
    of_point = any("POINT" in (one.metavar or "") for one in command.params)
    for point in points if of_point else points[:1]:
        plan = str(tmp_path / "harmless.yaml")
        values = dict.fromkeys(RUN, str(run)) | dict.fromkeys(POINT, point) | dict.fromkeys(PLANS, plan)
        for given in words(command, values):
            done = call(tmp_path, *path, *given, code=None)
            assert "Traceback" not in done.stderr, done.stderr
            assert not (tmp_path / OWNED).exists(), f"{given}: {done.stdout}{done.stderr}"


def test_with_the_user_s_word_they_are_run(hostile: tuple[Path, list[str]], tmp_path: Path) -> None:
    """The other tests could not fail otherwise."""
    run, points = hostile
    call(tmp_path, "shrink", str(run), points[0], "--max-runs", "2", "--commands", code=None)
    assert (tmp_path / OWNED).exists()


@pytest.mark.parametrize("command", ["replay", "shrink"])
def test_what_would_be_run_is_printed(command: str, hostile: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Of shrink also where only the point that it compares with starts a program."""
    run, points = hostile
    given = [points[1] if command == "replay" else points[0]]
    done = call(tmp_path, command, str(run), *given, code=None)
    assert done.returncode == 2
    assert f"want --commands, if they may:\n  point {points[1]}, bulk, client: sh -c 'mount" in done.stderr
    assert not (tmp_path / "results").exists()
