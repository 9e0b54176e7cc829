# SPDX-License-Identifier: Apache-2.0
"""A point of a run that fails an expectation or breaks a rule, and plans of subsets of its tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.core.testbed_kind import kind_of
from testctl.plan import Expectation, Plan, Point, load_plan, yaml_reader
from testctl.plan.allow import breaks, broken_rules
from testctl.plan.diagnostics import Place
from testctl.plan.judge import Judge, Results, Verdict, counterpart, matching, meets
from testctl.plan.load import TEXT_NAME
from testctl.plan.located import node_of, plain
from testctl.plan.numbers import value_shown
from testctl.plan.points import setting
from testctl.plan.sweep_figures import FLOW
from testctl.results import Run, RunPoint, layout
from testctl.results.provenance import Provenance, plan_of, point_of
from testctl.shrink.yaml import block
from testctl.testbeds.point_spec import refuse_commands

Tuple3 = tuple[str, str, str]
Tuples = tuple[Tuple3, ...]
KEPT_FIELDS = ("topology", "flows", "groups")


@dataclass(frozen=True)
class Case:
    """The point to shrink.

    plan         the plan as the run used it
    point        the point in that plan, and `found`, what the run has of it
    expectation  the expectation that judges it, and `raw`, as the plan has it; None: a rule of TCP does
    judged_by    their name
    wanted       "fail": the smallest set that still fails it; "pass": that still meets it
    tuples       the point's, with the values of formulas
    than         tuple's key -> the value at the point that the expectation compares with
    swept        entity and parameter -> the values in plan.yaml, without --set and formulas
    commands     whether its points may start programs of the plan
    """

    run: Run
    plan: Plan
    point: Point
    found: RunPoint
    judged_by: str
    expectation: Expectation | None
    raw: Mapping[str, Any]
    document: Mapping[str, Any]
    wanted: Verdict
    tuples: Tuples
    than: Mapping[str, str]
    swept: Mapping[tuple[str, str], tuple[str, ...]]
    commands: bool = False

    @property
    def name(self) -> str:
        """The plan's name, a prefix of files.  Raises PlanError."""
        return layout.safe_name(str(self.run.summary.get("plan") or self.plan.name), "plan")


def open_case(run: Run, start: str, expectation: str = "", holds: bool = False, commands: bool = False) -> Case:
    """The point of a run whose id starts so, and what to hold it against.

    expectation  its number in the plan (from 1) or its name, or a rule's; "": the first that the point fails, or breaks
    holds        search for the tuples that make the point meet it
    commands     whether the command lines of the run's plan may be run, if it has any

    Raises PlanError with the reason for points that can't be shrunk.
    """
    failing = run.point(start)
    if failing.verdict not in ("pass", "fail"):
        why = f": {failing.reason}" if failing.reason else ""
        raise PlanError(f"point {failing.id} is {failing.verdict}{why}; want one that ran and was judged, to shrink it")
    plan = plan_of(run)
    if not kind_of(plan.testbed).local:
        got = Provenance.from_json(run.summary).testbed
        raise PlanError(f"{run.path}: want a run in the lab or in netns, to shrink a point of it; got one of {got}")
    point = point_of(run, plan, failing.id)
    wanted: Verdict = "pass" if holds else "fail"
    chosen = _chosen(run, plan, point, expectation, wanted)
    root = yaml_reader.parse(run.plan_text, TEXT_NAME)
    raw, levels, than = {}, point.levels, {}
    if not isinstance(chosen, str):
        assert isinstance(root, yaml_reader.Mapping)
        listed = root.get("expect")
        assert isinstance(listed, yaml_reader.Sequence)
        raw = next(plain(item) for item in listed.items if item.place == chosen.place)
        levels = counterpart(point.levels, chosen.bounds.than)
        other = next(p for p in plan.points if p.levels == levels)
        # A value that both points have is a tuple like any other.
        differ = [i for i in chosen.bounds.than if levels[i] != point.levels[i]]
        than = {plan.assignments[i].key: _with_values(plan, other)[i][2] for i in differ}
    refuse_commands((p for p in plan.points if p.levels in (point.levels, levels)), commands)
    name, expected = (chosen, None) if isinstance(chosen, str) else (chosen.name, chosen)
    tuples, swept = _with_values(plan, point), _swept(run)
    return Case(run, plan, point, failing, name, expected, raw, plain(root), wanted, tuples, than, swept, commands)


def _with_values(plan: Plan, point: Point) -> Tuples:
    """The tuples of a point, with the values of formulas.  Raises PlanError where one has several."""
    tuples = list(point.tuples)
    for index, (assignment, level) in enumerate(zip(plan.assignments, point.levels, strict=True)):
        if assignment.texts[level] not in assignment.constants:
            values = {value_shown(t.spec.type, setting(point, t)): None for t in assignment.targets}
            if len(values) > 1:
                got = f"{', '.join(values)}, of {assignment.texts[level]}"
                raise PlanError(f"{assignment.key}: want one value at point {point.id}, to shrink it; got {got}")
            tuples[index] = (assignment.entity, assignment.param, next(iter(values)))
    return tuple(tuples)


def _swept(run: Run) -> dict[tuple[str, str], tuple[str, ...]]:
    try:
        return {
            (assignment.entity, assignment.param): assignment.constants
            for assignment in plan_of(run, as_written=True).assignments
        }
    except PlanError:  # the plan is complete only with its overrides
        return {}


def _chosen(run: Run, plan: Plan, point: Point, name: str, wanted: Verdict) -> Expectation | str:
    """The expectation to shrink by, or the rule."""
    about = [(i, e) for i, e in enumerate(plan.expectations) if e.bounds.given and matching(e, [point])]
    judge = Judge(plan, {point.id: point.measured for point in run.points})
    verdicts = {i: judge.one(e, point).verdict for i, e in about}
    broken = list(judge.violated(point)) if wanted == "fail" else []
    if not name:
        for number, chosen in about:
            if verdicts[number] == wanted and chosen.quantifier == "every":
                return chosen
        if broken:
            return broken[0]
        hint = "" if wanted == "pass" else " and breaks no rule; --holds asks what makes it meet one"
        raise PlanError(f"nothing to shrink: point {point.id} {_verb(wanted)} no expectation of its plan{hint}")
    for number, chosen in enumerate(plan.expectations):
        if name not in (chosen.name, str(number + 1)):
            continue
        if chosen.quantifier == "some":
            raise PlanError(f"expect {chosen.name}: is about some of several points, not about one; it can't be shrunk")
        if verdicts.get(number) == wanted:
            return chosen
        is_so = f"it is {verdicts[number]} there" if number in verdicts else "it is not about that point"
        raise PlanError(f"expect {chosen.name}: want one that point {point.id} {_verb(wanted)}; {is_so}")
    if name in broken:
        return name
    known = "; ".join([f"{i + 1} {e.name}" for i, e in about] + broken) or "none"
    raise PlanError(f"--expectation: want one that is about point {point.id}: {known}; got {name!r}")


def _verb(wanted: Verdict) -> str:
    return "fails" if wanted == "fail" else "meets"


@dataclass(frozen=True)
class Candidate:
    """A plan of some of a case's tuples: its point, and the point that it is compared with."""

    plan: Plan
    point: Point
    other: Point | None

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.point, self.other) if self.other else (self.point,)


def candidate(case: Case, tuples: Tuples) -> Candidate:
    """Raises PlanError if these tuples are not a valid plan."""
    from testctl.metrics import metric_names

    root = node_of(document_of(case, tuples), Place(TEXT_NAME))
    bed, topology = case.plan.testbed, case.plan.topology_text
    plan = load_plan(
        root, metrics=metric_names(), testbed=bed, paper=False, topology_text=topology, traces=case.plan.traces
    )
    point = plan.points[0]
    if point.duration_ns > case.point.duration_ns:
        raise PlanError(f"the point would take {point.duration_ns / 1e9:g} s, longer than {case.point.id} itself")
    than = plan.expectations[0].bounds.than if plan.expectations else {}
    if not than:
        return Candidate(plan, point, None)
    levels = counterpart(point.levels, than)
    return Candidate(plan, point, next(p for p in plan.points if p.levels == levels))


def verdict_of(case: Case, outcome: Candidate, results: Results) -> tuple[Verdict, str]:
    """The verdict of the expectation, or the rule, at the candidate's point, and its message."""
    judge = Judge(outcome.plan, results)
    if case.expectation:
        finding = judge.one(outcome.plan.expectations[0], outcome.point)
        return finding.verdict, finding.text
    measured = judge.measured(outcome.point.id)
    if measured.verdict not in ("pass", "fail"):
        return measured.verdict, measured.reason
    text = broken_rules(measured.metrics, ()).get(case.judged_by, "")
    if text:
        return "fail", text
    broke = (flow for flow, of in case.found.metrics.items() if breaks({flow: of}, case.judged_by))
    for flow in broke:
        if measured.metrics.get(flow, {}).get("rules_violated") is None:
            return "invalid", f"nothing at an end of {flow} says which rules it broke"
    return "pass", f"the rule {case.judged_by} was not broken"


def topology_file(case: Case) -> str:
    """The name of the file beside the plan, for a topology that the run's plan names by its path."""
    return f"{case.name}_{case.point.id}_topology.yaml"


def document_of(case: Case, tuples: Tuples) -> dict[str, Any]:
    """A plan of these tuples and the one expectation, if there is one, as plain data."""
    ours = {f"{entity}.{param}": text for entity, param, text in tuples}
    values = {key: [text, case.than[key]] if key in case.than else text for key, text in ours.items()}
    left_out = ("name", "when", "than", "paper")
    expect = {"name": case.judged_by, **{k: v for k, v in case.raw.items() if k not in left_out}}
    beside = case.expectation.bounds.beside if case.expectation else ""
    if case.than or beside:
        expect["than"] = dict(case.than) | ({FLOW: beside} if beside else {})
    if case.than:
        expect["when"] = {key: ours[key] for key in case.than}
    own, filled = f"./{topology_file(case)}", dict(case.plan.topology.parameters)
    topology = {"topology": {own: filled} if filled else own} if case.plan.topology_text else {}
    allow = [{"rule": a.rule, "reason": a.reason} for a in case.plan.allowed if meets(case.point.levels, a.when)]
    return {
        **{name: case.document[name] for name in KEPT_FIELDS if case.document.get(name) is not None},
        **topology,
        **({"allow": allow} if allow else {}),
        "seed": case.point.seed,
        "tuples": [[entity, param, values[f"{entity}.{param}"]] for entity, param, _ in tuples],
        **({"expect": [expect]} if case.expectation else {}),
    }


def plan_text(
    case: Case, tuples: Tuples, comments: Sequence[str] = (), notes: Mapping[Tuple3, str] | None = None
) -> str:
    """The plan as text.

    comments  lines above it
    notes     comments behind tuples
    """
    document = document_of(case, tuples)
    if comments:
        document = {"about": f"What of point {case.point.id} of {case.name} matters", **document}
    written, expected = document.pop("tuples"), document.pop("expect", [])
    lines = [f"# {line}" for line in comments]
    lines += [f"{name}: {block(value)}" for name, value in document.items()]
    lines.append("tuples:")
    for item, (entity, param, value) in zip(tuples, written, strict=True):
        note = f"  # {notes[item]}" if notes and item in notes else ""
        lines.append(f"  - [{block(entity)}, {block(param)}, {block(value, values=True)}]{note}")
    for expect in expected:
        fields = [f"{name}: {block(value, values=name in ('when', 'than'))}" for name, value in expect.items()]
        lines += ["expect:", "  - " + "\n    ".join(fields)]
    return "\n".join(lines) + "\n"
