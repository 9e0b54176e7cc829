# SPDX-License-Identifier: Apache-2.0
"""The provenance of a run: how and where it was made, and the noise of the machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.plan import Plan, Point, load_plan
from testctl.plan.load import TEXT_NAME
from testctl.results.noise import newest as newest_noise
from testctl.results.reader import Run


@dataclass(frozen=True)
class Provenance:
    """How a run was made, as summary.json has it.

    testbed    "lab", "netns" or the path of an inventory
    overrides  the arguments of --set, including that of --kernel
    left_out   (entity, parameter, values) of the tuples that --without left out
    dropped    names of the expectations that --set or --without removed
    jobs       points at once; 0: not known
    noise      result of the newest A/A test of this testbed; None: there is none, or it is the lab
    versions   of the kernels, the code and the tools
    reproduce  the command that makes the run again
    """

    testbed: str = DEFAULT
    overrides: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    jobs: int = 0
    noise: Mapping[str, Any] | None = None
    versions: Mapping[str, Any] = field(default_factory=dict)
    reproduce: str = ""

    @classmethod
    def of(cls, plan: Plan, results: Path, jobs: int, versions: Mapping[str, Any]) -> Provenance:
        """The provenance of a run of this plan, made now; results: the directory of the A/A tests."""
        return cls(
            testbed=plan.testbed,
            overrides=plan.overrides,
            left_out=plan.left_out,
            dropped=plan.dropped,
            jobs=jobs,
            noise=newest_noise(results, plan.testbed) if not kind_of(plan.testbed).deterministic else None,
            versions=versions,
            reproduce=command_of(plan) or f"testctl run {plan.name}.yaml",
        )

    def to_json(self) -> dict[str, Any]:
        """Entries of summary.json: no empty lists; in the lab no "testbed", "jobs" and "noise"."""
        lists = {
            "overrides": list(self.overrides),
            "left_out": [list(tuple_) for tuple_ in self.left_out],
            "dropped": list(self.dropped),
        }
        if not kind_of(self.testbed).deterministic:
            own = {"testbed": self.testbed, "jobs": self.jobs, "noise": self.noise}
        else:
            own = {}
        document = {name: given for name, given in lists.items() if given}
        return {"reproduce": self.reproduce, "versions": dict(self.versions), **document, **own}

    @classmethod
    def from_json(cls, summary: Mapping[str, Any]) -> Provenance:
        """From summary.json."""
        return cls(
            testbed=str(summary.get("testbed") or DEFAULT),
            overrides=tuple(map(str, summary.get("overrides", []))),
            left_out=tuple((str(e), str(p), str(v)) for e, p, v in summary.get("left_out", [])),
            dropped=tuple(map(str, summary.get("dropped", []))),
            jobs=int(summary.get("jobs") or 0),
            noise=summary.get("noise"),
            versions=summary.get("versions") or {},
            reproduce=str(summary.get("reproduce") or ""),
        )

    @property
    def without(self) -> tuple[str, ...]:
        """The --without words."""
        return tuple(f"{entity}.{parameter}" for entity, parameter, _ in self.left_out)


def plan_of(run: Run, as_written: bool = False) -> Plan:
    """The plan of a finished run: its plan.yaml with its overrides, without the tuples left out.

    as_written  without the overrides, with the tuples left out

    Raises PlanError.
    """
    from testctl.metrics import metric_names

    if not run.plan_text:
        raise PlanError(f"{run.path}: want the run's plan.yaml; there is none")
    made_with = run.versions.get("metrics")
    brought = {str(name): str(by) for name, by in made_with.items()} if isinstance(made_with, Mapping) else {}
    names = set(re.findall(r"\w+", run.plan_text))
    expected = {str(expectation.get("metric") or "") for expectation in run.summary.get("expectations") or ()} - {""}
    missing = sorted(((names & brought.keys()) | expected) - metric_names().keys())
    if missing:
        by = sorted({brought[name] for name in missing if name in brought})
        remedy = f"the run was made with {', '.join(by)}: install that" if by else "install what brings it"
        raise PlanError(
            f"{run.path}: its plan names the metric {', '.join(missing)}, which is not installed here; {remedy} "
            "(docs/extensions.md); show and compare work without it"
        )
    made = Provenance.from_json(run.summary)
    return load_plan(
        run.plan_text.encode(),
        metrics=metric_names(),
        testbed=kind_of(made.testbed).name,
        overrides=() if as_written else made.overrides,
        without=() if as_written else made.without,
        paper=False,
        topology_text=run.topology_text,
        traces=run.traces,
    )


def point_of(run: Run, plan: Plan, point_id: str) -> Point:
    """A point from its run's plan, by its id, which is a hash of its settings.

    The run's point.json is not trusted: the run may be foreign, and a lab executes commands that a point names.
    Raises PlanError.
    """
    match = next((point for point in plan.points if point.id == point_id), None)
    if match is None:
        raise PlanError(f"{run.path}: the point {point_id} can't be made again from its plan (another testctl?)")
    return match


def command_of(plan: Plan, does: str = "run") -> str:
    """The command for a plan in this directory; "" if the plan is not in a file.  does: the subcommand."""
    default = kind_of(plan.testbed).name == DEFAULT
    if default and plan.file == TEXT_NAME:
        return ""
    arguments = ["testctl", does, from_here(plan.file), *([] if default else ["--testbed", plan.testbed])]
    kernel = re.compile(r"(.+)\.kernel='source'")
    for given in plan.overrides:
        own = kernel.fullmatch(given) if plan.tree else None
        on = [] if own is None or own[1] == "hosts" else ["--on", own[1]]
        arguments += ["--set", given] if own is None else ["--source", plan.tree["source"], *on]
    arguments += [word for entity, parameter, _ in plan.left_out for word in ("--without", f"{entity}.{parameter}")]
    return shlex.join(arguments)


def command_without(plan: Plan, lacking: Collection[tuple[str, str]]) -> str:
    """The command that leaves out the tuples that set these parameters of these entities.

    "" if that is impossible: no tuple sets one of them, or another tuple needs it.
    """
    from testctl.metrics import metric_names

    by = {(target.entity, target.param): (a.entity, a.param, "") for a in plan.assignments for target in a.targets}
    if not lacking or any(key not in by for key in lacking):
        return ""
    left_out = (*plan.left_out, *sorted({by[key] for key in lacking}))
    keys = [f"{entity}.{parameter}" for entity, parameter, _ in left_out]
    try:
        load_plan(Path(plan.file), metrics=metric_names(), testbed=plan.testbed, overrides=plan.overrides, without=keys)
    except PlanError:
        return ""
    return command_of(replace(plan, left_out=left_out))


def from_here(path: Path | str) -> str:
    """A path, relative to this directory if it is below."""
    with suppress(ValueError):
        return str(Path(path).absolute().relative_to(Path.cwd()))
    return str(path)
