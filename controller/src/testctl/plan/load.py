# SPDX-License-Identifier: Apache-2.0
"""Reads a plan and checks it before anything runs."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value

from testctl.core.point import Point
from testctl.core.testbed_kind import kind_of
from testctl.core.topology import Topology
from testctl.plan.allow import read_allowed
from testctl.plan.checks.aqms import check_aqms
from testctl.plan.checks.commands import check_commands
from testctl.plan.checks.hosts import check_hosts
from testctl.plan.checks.programs import check_programs
from testctl.plan.checks.scopes import check_distributed
from testctl.plan.checks.switches import check_switches
from testctl.plan.checks.workloads import check_workloads
from testctl.plan.conditions import Reader
from testctl.plan.diagnostics import Problems, show
from testctl.plan.expect import ExpectReader
from testctl.plan.field_tables import DESIGN, PLAN
from testctl.plan.fields import Fields, integer
from testctl.plan.figures import nothing_to_draw, read_figures
from testctl.plan.flows import read_flows
from testctl.plan.formulas import read_formulas
from testctl.plan.judge import counterpart, matching, meets
from testctl.plan.left_out import LeftOut
from testctl.plan.model import Condition, Design, Expectation, Levels, Plan, WrittenPlan
from testctl.plan.named_files import ValueFiles
from testctl.plan.names import Names, read_names
from testctl.plan.points import MAX_POINTS, expand, space_of
from testctl.plan.ranges import MAX_STEPS
from testctl.plan.registry import MetricInfo, Parameters, Registry, default_registry
from testctl.plan.sample import draw
from testctl.plan.temporal import without_instruments
from testctl.plan.topology import find_topology, other_topologies, topology_dir, topology_names
from testctl.plan.topology_file import OwnTopology, TopologyFile, read_topology
from testctl.plan.tuples import read_tuples
from testctl.plan.yaml_reader import MAX_BYTES, Node, Scalar, parse, what
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Sequence as SequenceNode
from testctl.plan.zips import read_zips

MAX_EXPECTATIONS = 500
TEXT_NAME = "<plan>"
CLAIM_PLANS = (("plans", "paper"), ("plans", "rfc"))
"""The directories whose plans hold claims."""
CAPTURES = {bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")}
"""Magic numbers of pcap and pcapng, in both byte orders."""


def load_plan(
    given: Path | str | bytes | Node,
    *,
    metrics: Mapping[str, MetricInfo] | None = None,
    testbed: str = "lab",
    overrides: Sequence[str] = (),
    max_points: int = MAX_POINTS,
    registry: Registry | None = None,
    topologies: Path | None = None,
    paper: bool | None = None,
    without: Sequence[str] = (),
    topology_text: str | None = None,
    traces: Mapping[str, str] | None = None,
    directory: Path | None = None,
    rules: Collection[str] | None = None,
) -> Plan:
    """The plan of a file (a path, or text of one line), of the text itself (bytes, or several lines) or of its nodes.

    metrics     the metrics that `expect` may name, with their units; None: any
    testbed     "lab", "netns", or anything else for an inventory
    overrides   ENTITY.PARAM=VALUE words that replace or add a tuple and win over all others
    registry    the parameters there are; None: those of the agents
    topologies  where the topology files are; None: topology_dir()
    paper       whether it has to hold claims of a paper; None: if it lies in plans/paper/ or plans/rfc/
    without     ENTITY.PARAM of tuples to leave out, as the user's explicit choice
    topology_text  the text of a topology that the plan names by its path; None: that file is read
    traces      path -> value of the files of values that the plan names by their paths; None: those files are read
    directory   where the paths of such files begin; None: at the plan's file
    rules       the rules of TCP that `allow` may name; None: any

    Raises PlanError with every problem and its place.
    """
    root, text, file, name = _source(given)
    problems = Problems()
    fields = Fields(root, "", PLAN, problems)
    if not fields.ok:
        problems.check()
    if directory is None and file != TEXT_NAME:
        directory = Path(file).parent
    own, files = OwnTopology(directory, topology_text), ValueFiles(directory, traces)
    topology = _topology(fields.nodes["topology"], topologies, own, problems)
    if topology is None:
        problems.check()
        raise PlanError(f"{file}: no topology")
    flows, of_flows = read_flows(fields.nodes["flows"], topology, problems)
    names = read_names(fields.nodes.get("groups"), topology, flows, of_flows, problems)
    parameters = Parameters(registry or default_registry())
    bed = kind_of(testbed).name
    assignments, left_out = read_tuples(
        fields.nodes["tuples"], overrides, names, parameters, bed, problems, without, files
    )
    about, design = fields.text("about"), _design(fields.nodes.get("design"), problems)
    repeat, seed = fields.integer("repeat", 1), fields.integer("seed", 1)
    problems.check()  # conditions of tuples that could not be read would only add noise
    reader = Reader(assignments, names, parameters, problems, files, sample=bool(design.sample))
    remaining = LeftOut(left_out, assignments, names, parameters)
    zips = read_zips(fields.nodes.get("zip"), reader, remaining)
    reader = replace(reader, zips=zips)
    excludes = _excludes(remaining.kept(fields.nodes.get("exclude"))[0], reader)
    rows: tuple[Levels, ...] = ()
    if design.sample and not problems:
        place = fields.nodes["design"].place
        assignments, rows = draw(assignments, excludes, zips, design, place, problems)
        reader = replace(reader, assignments=assignments)
    for assignment in assignments if not design.sample else ():
        if assignment.range:
            want = f"steps, so many values from 2 to {MAX_STEPS}, or design: {{sample: 200}}"
            problems.add(assignment.place_of(0), f"{assignment.key}: want {want}; got a range without")
    named = read_formulas(reader)
    expectations, not_judged = remaining.kept(fields.nodes.get("expect"))
    figures, _ = remaining.kept(fields.nodes.get("figures"))
    written = WrittenPlan(
        name=name,
        file=file,
        text=text,
        about=about,
        testbed=testbed,
        overrides=tuple(overrides),
        topology=topology,
        flows=flows,
        groups=names.groups,
        assignments=assignments,
        defaults=_defaults(names, parameters, bed),
        design=design,
        repeat=repeat,
        seed=seed,
        excludes=excludes,
        expectations=_expectations(expectations, fields.nodes.get("expect"), ExpectReader(reader, metrics), problems),
        figures=read_figures(figures, problems, reader, metrics),
        left_out=tuple((a.entity, a.param, ", ".join(a.texts)) for a in left_out),
        topology_text=own.read,
        traces=files.read,
        allowed=read_allowed(remaining.kept(fields.nodes.get("allow"))[0], reader, rules),
        zips=zips,
        rows=rows,
        named=named,
    )
    if (paper or (paper is None and _of_paper(given))) and not not_judged:
        _check_claims(written, fields, problems)
    problems.check()
    points = expand(written, max_points)
    check_distributed(assignments, written.defaults, names, parameters, space_of(written), problems)
    check_switches(assignments, points, names, problems)
    check_aqms(assignments, points, problems)
    check_programs(assignments, points, problems)
    check_commands(assignments, points, testbed, problems)
    check_hosts(assignments, points, problems)
    check_workloads(assignments, points, problems)
    plan = _expanded(written, points, not_judged)
    _check_expectations(plan, problems)
    for number, figure in enumerate(plan.figures if not overrides else (), start=1):
        if why := nothing_to_draw(figure, [point for point in points if meets(point.levels, figure.condition)]):
            problems.add(figure.place, f"figure {number}: {why}")
    problems.check()
    return plan


def load_topology(name: str, values: Mapping[str, int] | None = None, directory: Path | None = None) -> Topology:
    """A topology by the name of its file, with these parameters.  Raises PlanError."""
    file = find_topology(name, directory)
    return file.resolve(dict(file.parameter(f"{key}={value}") for key, value in (values or {}).items()))


def _source(given: Path | str | bytes | Node) -> tuple[Node, str, str, str]:
    """The nodes, the text ("" where there is none), the name of the file as errors show it, and that of the plan."""
    if isinstance(given, Node):
        return given, "", TEXT_NAME, "plan"
    if isinstance(given, bytes) or (isinstance(given, str) and ("\n" in given or not given)):
        text = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
        return parse(given, TEXT_NAME), text, TEXT_NAME, "plan"
    try:
        with open(given, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        path = os.fspath(given)
        raise PlanError(f"{path if path.isprintable() else repr(path)}: can't read the plan: {reason}") from error
    if data[:4] in CAPTURES:
        raise PlanError(f"{given}: this is a capture of packets, not a plan")
    return parse(data, str(given)), data.decode("utf-8", "replace"), str(given), Path(given).stem


def _topology(node: Node, directory: Path | None, own: OwnTopology, problems: Problems) -> Topology | None:
    """`topology: NAME` or `topology: {NAME: {parameter: number}}`; in place of NAME the path of a file, ./mine.yaml."""
    values: Node | None = None
    name = node
    if isinstance(node, MappingNode) and len(node.entries) == 1:
        name, values = node.entries[0]
    if not isinstance(name, Scalar) or name.empty:
        problems.add(node.place, f"topology: want a name or {{name: {{parameter: number}}}}; got {what(node)}")
        return None
    topology = (
        own.file(name, problems) if "/" in name.text else _of_the_lab(name, directory or topology_dir(), problems)
    )
    if topology is None:
        return None
    who = f"topology {name.text}"
    filled: dict[str, int] = {}
    if values is not None and not (isinstance(values, Scalar) and values.empty):
        if not topology.parameters:
            got = values.entries[0][0] if isinstance(values, MappingNode) and values.entries else values
            problems.add(values.place, f"{who}: want no parameters; got {what(got)}")
            return None
        fields = Fields(values, who, [p.name for p in topology.parameters], problems)
        for p in topology.parameters:
            if p.name in fields.nodes:
                filled[p.name] = integer(fields.nodes[p.name], f"{who}, {p.name}", p.least, p.most, problems, p.default)
    return topology.resolve(filled)


def _of_the_lab(name: Scalar, directory: Path, problems: Problems) -> TopologyFile | None:
    known = topology_names(directory)
    if name.text not in known:
        problems.add(name.place, f"no topology named {show(name.text)}{other_topologies(name.text, known)}")
        return None
    return read_topology(directory / f"{name.text}.yaml")


def _defaults(names: Names, parameters: Parameters, testbed: str) -> dict[str, dict[str, Value]]:
    """Entity -> {parameter: its spec's default}, for those that have one."""
    entities = {
        "host": tuple(names.topology.hosts),
        "switch": names.topology.switches,
        "port": names.topology.all_ports,
        "flow": names.groups["flows"],
    }
    defaults: dict[str, dict[str, Value]] = {}
    for kind, members in entities.items():
        specs = parameters.specs.get(kind, {})
        values = {n: s.default for n, s in specs.items() if s.default is not None and testbed in s.testbeds}
        defaults |= {member: dict(values) for member in members if values}
    return defaults


def _design(node: Node | None, problems: Problems) -> Design:
    """`design: full`, `design: {cover: t, seed: n}` or `design: {sample: n, seed: n}`."""
    if node is None or (isinstance(node, Scalar) and node.text == "full"):
        return Design()
    if not isinstance(node, MappingNode):
        problems.add(node.place, f"design: want full, {{cover: 2}} or {{sample: 200}}; got {what(node)}")
        return Design()
    fields = Fields(node, "design", DESIGN, problems)
    given = [name for name in ("cover", "sample") if name in fields.nodes]
    if len(given) != 1:
        problems.add(node.place, f"design: want a field cover or a field sample; got {' and '.join(given) or 'none'}")
    return Design(fields.integer("cover", 0), fields.integer("seed", 1), fields.integer("sample", 0))


def _excludes(node: Node | None, reader: Reader) -> tuple[Condition, ...]:
    if node is None:
        return ()
    if not isinstance(node, SequenceNode):
        reader.problems.add(node.place, f"exclude: want a list of mappings; got {what(node)}")
        return ()
    conditions = [reader.condition(item, "exclude") for item in node.items]
    return tuple(condition for condition in conditions if condition is not None)


def _expectations(
    node: Node | None, whole: Node | None, reader: ExpectReader, problems: Problems
) -> tuple[Expectation, ...]:
    expectations = reader.read(node, whole)
    if node is not None and len(expectations) > MAX_EXPECTATIONS:
        problems.add(node.place, f"expect: want at most {MAX_EXPECTATIONS}; got {len(expectations)}")
    seen: set[str] = set()
    for expectation in expectations:
        if expectation.name in seen:
            problems.add(expectation.place, f"expect {show(expectation.name)}: want a name for each; got it twice")
        seen.add(expectation.name)
    return expectations


def _expanded(written: WrittenPlan, points: tuple[Point, ...], not_judged: tuple[str, ...]) -> Plan:
    """The plan with its points, and without expectations that compare with a value that --set removed.

    not_judged: expectations already removed by --without
    """
    gone = tuple(e.name for e in written.expectations if -1 in e.bounds.than.values())
    kept = tuple(e for e in written.expectations if e.name not in gone)
    over_time = [(e.when, e.bounds.over_time) for e in kept if e.bounds.over_time is not None]
    if over_time:
        own = [dict.fromkeys(of for when, of in over_time if meets(point.levels, when)) for point in points]
        points = tuple(replace(point, conditions=tuple(of)) for point, of in zip(points, own, strict=True))
    return Plan(**{**vars(written), "expectations": kept}, points=points, dropped=(*gone, *not_judged))


def _check_expectations(plan: Plan, problems: Problems) -> None:
    """Checks that each has a point, and that its points of comparison exist."""
    there = {point.levels for point in plan.points}
    for expectation in plan.expectations:
        who = f"expect {show(expectation.name)}"
        than = expectation.bounds.than
        about = matching(expectation, plan.points)
        if not about and not plan.overrides:
            problems.add(expectation.place, f"{who}: no point of the plan meets its `when`")
        over_time = expectation.bounds.over_time
        for flow in expectation.flows if over_time is not None and about else ():
            assert over_time is not None, "as the line above has it"
            if why := without_instruments(over_time, flow, about):
                problems.add(expectation.place, f"{who}: {flow}: {why}")
        alone = next((p.levels for p in about if counterpart(p.levels, than) not in there), None)
        if alone is not None:
            swept = {i: level for i, level in enumerate(alone) if plan.sizes[i] > 1 and i not in than}
            where = f" with {_described(plan, swept)}" if swept else ""
            problems.add(expectation.place, f"{who}: than: the plan has no point {_described(plan, than)}{where}")


def _of_paper(given: Path | str | bytes | Node) -> bool:
    """Whether a plan's file is one of CLAIM_PLANS."""
    if isinstance(given, bytes | Node) or (isinstance(given, str) and "\n" in given):
        return False
    return Path(given).resolve().parts[-3:-1] in CLAIM_PLANS


def _check_claims(plan: WrittenPlan, fields: Fields, problems: Problems) -> None:
    if not any(expectation.paper for expectation in plan.expectations) and not problems:
        node = fields.nodes.get("expect") or fields.node
        assert node is not None, "Fields is ok"
        problems.add(node.place, "expect: want an entry with `paper:`, what a paper published; got none")


def _described(plan: Plan, levels: Mapping[int, int]) -> str:
    texts = []
    for index, level in levels.items():
        assignment = plan.assignments[index]
        texts.append(f"{assignment.key} = {assignment.texts[level]}")
    return ", ".join(texts)
