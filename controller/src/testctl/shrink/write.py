# SPDX-License-Identifier: Apache-2.0
"""Writes the result of a search: a plan that shows the failure, JSON, and text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text
from testctl_agent.spec import trace

from testctl.core.units import show_time
from testctl.core.words import counted
from testctl.results.atomic import naming_path, write_json, write_text
from testctl.shrink.case import Case, plan_text, topology_file
from testctl.shrink.matters import Matter
from testctl.shrink.search import SearchResult
from testctl.shrink.trials import Trials

REPORT = "shrink.json"


def to_json(case: Case, result: SearchResult, trials: Trials, plan: Path) -> dict[str, Any]:
    """The result as JSON: the smallest set, the tuples that matter and those that do not, and every trial."""
    return {
        "run": case.run.name,
        "point": case.point.id,
        "expectation": case.judged_by,
        "verdict": case.wanted,
        "complete": result.done,
        "stopped_at": result.stage,
        "plan": str(plan),
        "smallest": [list(item) for item in result.smallest],
        "kept": [{"tuple": list(item), "why": why} for item, why in result.kept.items()],
        "tuples": [asdict(matter) | {"matters": matter.matters} for matter in result.matters.values()],
        "runs": trials.runs,
        "trials": [
            {"tuples": [list(item) for item in trial.tuples], "answer": trial.answer, "words": trial.words}
            for trial in trials.made.values()
        ],
    }


def write(case: Case, result: SearchResult, trials: Trials, directory: Path) -> Path:
    """Write the plan and the report into the search's directory, replacing earlier ones; returns the plan's path."""
    path = directory / f"{case.name}_{case.point.id}.yaml"
    verb = "fails" if case.wanted == "fail" else "meets"
    comments = [
        f"The smallest set of tuples with which point {case.point.id} of {case.run.name} {verb}",
        f"{case.judged_by!r}, as testctl shrink found it." + ("" if result.done else "  The search was not finished."),
    ]
    notes = {item: note for item, matter in result.matters.items() if (note := ranges(matter))}
    notes |= {item: f"kept: {why.strip()}" for item, why in result.kept.items()}
    with naming_path(directory, "what shrink found was not kept"):
        write_text(path, plan_text(case, result.smallest, comments, notes))
        if case.plan.topology_text:
            write_text(directory / topology_file(case), case.plan.topology_text)
        for name, value in case.plan.traces.items():
            if any(text == name for _, _, text in result.smallest):
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                write_text(directory / name, file_of(value))
        write_json(directory / REPORT, to_json(case, result, trials, path))
    return path


def file_of(value: str) -> str:
    """What a file has that has this value: a trace of a link, or a distribution of sizes."""
    lines = map(str, trace.parse(value)) if trace.is_trace(value) else (w.replace(":", " ") for w in value.split(" "))
    return "".join(f"{line}\n" for line in lines)


def ranges(matter: Matter) -> str:
    """The ranges of a tuple's other values as text."""
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


def print_found(case: Case, result: SearchResult, trials: Trials, plan: Path, console: Console) -> None:
    """Print tuples that matter with their ranges, those that do not, the number of runs, and the plan's path."""
    what = "failure" if case.wanted == "fail" else "result"
    console.print(f"\n{case.judged_by}: the smallest set of tuples with this {what} ", end="", markup=False)
    console.print(f"({len(result.smallest)} of {len(case.tuples)})" + ("" if result.done else ", so far"))
    headings = "tuple", "value", f"where the {what} stays and where it goes"
    table = Table(*(Column(heading, overflow="fold") for heading in headings), box=None)
    for item in result.smallest:
        note = ranges(result.matters[item]) if item in result.matters else ""
        note = f"kept: {result.kept[item].strip()}" if item in result.kept else note
        table.add_row(*map(Text, (f"{item[0]}.{item[1]}", item[2], note)))
    console.print(table)
    idle = [matter for matter in result.matters.values() if not matter.matters]
    if idle:
        table = Table("does not matter", "value", "", box=None)
        for matter in idle:
            text = _idle(matter)
            table.add_row(*map(Text, (f"{matter.item[0]}.{matter.item[1]}", matter.item[2], text)))
        console.print(table)
    if not result.done:
        console.print(f"not finished: {result.stage}; the same command goes on with what has been run")
    wall = show_time(sum(trial.wall_s for trial in trials.made.values()) * 1e9)
    console.print(f"{counted(len(trials.made), 'set of tuples')} tried, {counted(trials.runs, 'point')} run ({wall})")
    console.print(f"to see it again: testctl run {plan}", soft_wrap=True, markup=False)


def _idle(matter: Matter) -> str:
    if matter.default and matter.default != matter.item[2]:
        return f"the same with its default, {matter.default}"
    texts = ["its default"] if matter.default else []
    if matter.probes:
        texts.append(ranges(matter))
    else:
        texts.append("no other value was tried")
    return "; ".join(texts)
