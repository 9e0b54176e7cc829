# SPDX-License-Identifier: Apache-2.0
"""What a search found, as a plan that shows the failure, as JSON and for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from testctl_agent.spec import trace

from testctl.core.units import show_time
from testctl.core.words import counted
from testctl.results.atomic import naming_path, write_json, write_text
from testctl.shrink.case import Case, Tuple3, plan_text, topology_file
from testctl.shrink.matters import Matter
from testctl.shrink.search import SearchResult
from testctl.shrink.trials import Trials

REPORT = "shrink.json"


def to_json(case: Case, found: SearchResult, trials: Trials, plan: Path) -> dict[str, Any]:
    """What a machine reads: the smallest set, what matters and what does not, and every trial."""
    return {
        "run": case.run.name,
        "point": case.point.id,
        "expectation": case.expectation.name,
        "verdict": case.wanted,
        "complete": found.done,
        "stopped_at": found.stage,
        "plan": str(plan),
        "smallest": [list(item) for item in found.smallest],
        "kept": [{"tuple": list(item), "why": why} for item, why in found.kept.items()],
        "tuples": [asdict(matter) | {"matters": matter.matters} for matter in found.matters.values()],
        "runs": trials.runs,
        "trials": [
            {"tuples": [list(item) for item in trial.tuples], "answer": trial.answer, "words": trial.words}
            for trial in trials.made.values()
        ],
    }


def plan_file(case: Case, directory: Path) -> Path:
    """Where the plan of the smallest set goes."""
    return directory / f"{case.name}_{case.point.id}.yaml"


def write(case: Case, found: SearchResult, trials: Trials, directory: Path) -> Path:
    """Write the plan and the report into the search's directory, replacing what an earlier search left; the plan."""
    path = plan_file(case, directory)
    verb = "fails" if case.wanted == "fail" else "meets"
    comments = [
        f"The smallest set of tuples with which point {case.point.id} of {case.run.name} {verb}",
        f"{case.expectation.name!r}, as testctl shrink found it."
        + ("" if found.done else "  The search was not finished."),
    ]
    notes = {item: words for item, matter in found.matters.items() if (words := ranges(matter))}
    notes |= {item: f"kept: {why.strip()}" for item, why in found.kept.items()}
    with naming_path(directory, "what shrink found was not kept"):
        write_text(path, plan_text(case, found.smallest, comments, notes))
        if case.plan.topology_text:
            write_text(directory / topology_file(case), case.plan.topology_text)
        for name, value in case.plan.traces.items():
            if any(text == name for _, _, text in found.smallest):
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                write_text(directory / name, "".join(f"{ms}\n" for ms in trace.parse(value)))
        write_json(directory / REPORT, to_json(case, found, trials, path))
    return path


def ranges(matter: Matter) -> str:
    """What is known of a tuple's other values, in words."""
    texts = []
    if matter.least and matter.least != matter.most:
        texts.append(f"stays from {matter.least} to {matter.most}")
    elif matter.least:
        texts.append(f"stays at {matter.least} alone" if matter.below and matter.above else f"stays at {matter.least}")
    if matter.least:
        cant = {probe.value for probe in matter.probes if probe.answer == "unclear"}
        edges = [edge for edge in (matter.below, matter.above) if edge and edge not in cant]
        texts += [f"goes at {' and '.join(edges)}"] if edges else []
    else:
        by: dict[str, list[str]] = {}
        for probe in matter.probes:
            by.setdefault(probe.answer, []).append(probe.value)
        texts += [f"{answer} at {', '.join(by[answer])}" for answer in ("stays", "goes") if answer in by]
    unclear = [probe.value for probe in matter.probes if probe.answer == "unclear"]
    if unclear:
        texts.append(f"can't be run or judged at {', '.join(unclear)}")
    if matter.least and matter.probes:
        texts.append(f"tried {', '.join(probe.value for probe in matter.probes)}")
    if matter.without == "unclear":
        texts.append("can't be run or judged without it")
    if not matter.needed and matter.matters:
        texts.append("it is the default")
    return "; ".join(texts)


def print_found(case: Case, found: SearchResult, trials: Trials, plan: Path, console: Console) -> None:
    """For a person: what matters with its ranges, what does not, the number of runs, the plan."""
    what = "failure" if case.wanted == "fail" else "result"
    console.print(f"\n{case.expectation.name}: the smallest set of tuples with this {what} ", end="")
    console.print(f"({len(found.smallest)} of {len(case.tuples)})" + ("" if found.done else ", so far"))
    table = Table("tuple", "value", f"where the {what} stays and where it goes", box=None)
    for item in found.smallest:
        table.add_row(f"{item[0]}.{item[1]}", item[2], _of(item, found.matters, found.kept))
    console.print(table)
    idle = [matter for matter in found.matters.values() if not matter.matters]
    if idle:
        table = Table("does not matter", "value", "", box=None)
        for matter in idle:
            words = _idle(matter)
            table.add_row(f"{matter.item[0]}.{matter.item[1]}", matter.item[2], words)
        console.print(table)
    if not found.done:
        console.print(f"not finished: {found.stage}; the same command goes on with what has been run")
    wall = show_time(sum(trial.wall_s for trial in trials.made.values()) * 1e9)
    console.print(f"{counted(len(trials.made), 'set of tuples')} tried, {counted(trials.runs, 'point')} run ({wall})")
    console.print(f"to see it again: testctl run {plan}", soft_wrap=True)


def _of(item: Tuple3, matters: Mapping[Tuple3, Matter], kept: Mapping[Tuple3, str]) -> str:
    if item in kept:
        return f"kept: {kept[item].strip()}"
    return ranges(matters[item]) if item in matters else ""


def _idle(matter: Matter) -> str:
    if matter.default and matter.default != matter.item[2]:
        return f"the same with its default, {matter.default}"
    texts = ["its default"] if matter.default else []
    if matter.probes:
        texts.append(ranges(matter))
    else:
        texts.append("no other value was tried")
    return "; ".join(texts)
