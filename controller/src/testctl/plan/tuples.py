# SPDX-License-Identifier: Apache-2.0
"""Reads `tuples` and --set arguments as assignments, and decides which one wins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value, ValueType, shown

from testctl.plan.diagnostics import Place, Problems, show, suggest
from testctl.plan.formula import Formula, FormulaError, is_meant
from testctl.plan.hints import name_meant, value_meant
from testctl.plan.model import Assignment, Target
from testctl.plan.named_files import ValueFiles
from testctl.plan.names import Names
from testctl.plan.numbers import NUMBER_TYPES
from testctl.plan.ranges import read_range
from testctl.plan.registry import KINDS, Parameters
from testctl.plan.yaml_reader import Mapping, Node, Scalar, Sequence, parse, what

MAX_TUPLES = 1000
OVERRIDE = 10  # added to the rank of --set


@dataclass(frozen=True)
class Written:
    """A tuple as written in the file or on the command line."""

    place: Place
    entity: Scalar
    param: Scalar
    values: tuple[Node, ...]
    override: bool = False
    split: bool = False
    """Whether its values were given as one word with commas."""


def read_tuples(
    node: Node | None,
    overrides: Iterable[str],
    names: Names,
    parameters: Parameters,
    testbed: str,
    problems: Problems,
    without: Iterable[str] = (),
    files: ValueFiles | None = None,
) -> tuple[tuple[Assignment, ...], tuple[Assignment, ...]]:
    """The assignments of a plan, in its order, and those left out; what --set adds comes last.

    without: ENTITY.PARAM of tuples to leave out; files: reads the files that values name
    """
    files = files or ValueFiles()
    written = _from_file(node, problems)
    from_file = [a for w in written if (a := _assignment(w, names, parameters, testbed, problems, files))]
    left_out = _left_out(from_file, [_key(word, names) for word in without], problems)
    from_file = [a for a in from_file if a not in left_out]
    added = []
    for word in overrides:
        w = _from_override(word, problems)
        a = _assignment(w, names, parameters, testbed, problems, files) if w else None
        if a:
            added.append(a)
    for new in list(added):
        for index, old in enumerate(from_file):
            if old.rank < OVERRIDE and old.entity == new.entity and _keys(old) == _keys(new):
                from_file[index] = new
                added.remove(new)
                break
    return _resolve([*from_file, *added], names, problems), left_out


def _key(word: str, names: Names) -> str:
    """ENTITY.PARAM with the entity's own name."""
    entity, dot, param = word.partition(".")
    return f"{names.canonical(entity)}{dot}{param}"


def _left_out(assignments: list[Assignment], without: Iterable[str], problems: Problems) -> tuple[Assignment, ...]:
    """The tuples that --without names, each as it is written."""
    kept: list[Assignment] = []
    for word in without:
        matching = [a for a in assignments if a.key == word]
        if not matching:
            keys = [a.key for a in assignments]
            hint = suggest(word, keys) or f"; there are {', '.join(keys)}"
            problems.add(Place(f"--without {show(word)}"), f"want ENTITY.PARAM of a tuple of the plan{hint}")
        kept += matching
    return tuple(kept)


def _from_file(node: Node | None, problems: Problems) -> list[Written]:
    if node is None:
        return []
    shape = "[entity, parameter, value], or [entity, parameter, [value, …]] to sweep"
    if not isinstance(node, Sequence) or not node.items:
        problems.add(node.place, f"tuples: want a list of {shape}; got {what(node)}")
        return []
    if len(node.items) > MAX_TUPLES:
        problems.add(node.place, f"tuples: want at most {MAX_TUPLES}; got {len(node.items)}")
        return []
    written = []
    for item in node.items:
        if not isinstance(item, Sequence) or len(item.items) != 3:
            got = f"a list of {len(item.items)}" if isinstance(item, Sequence) else what(item)
            problems.add(item.place, f"tuples: want {shape}; got {got}")
            continue
        entity, param, value = item.items
        if not isinstance(entity, Scalar) or not isinstance(param, Scalar):
            odd = param if isinstance(entity, Scalar) else entity
            problems.add(odd.place, f"tuples: want {shape}; got {what(odd)}")
            continue
        values = value.items if isinstance(value, Sequence) else (value,)
        if not values:
            problems.add(
                value.place, f"{show(entity.text)}, {show(param.text)}: want at least one value; got an empty list"
            )
            continue
        written.append(Written(item.place, entity, param, values))
    return written


def _from_override(word: str, problems: Problems) -> Written | None:
    """ENTITY.PARAM=VALUE; several values with commas between or as a YAML list, or a range as a YAML mapping; a value
    with a comma in quotes.
    """
    place = Place(f"--set {show(word)}")
    key, equals, text = word.partition("=")
    entity, dot, param = key.strip().partition(".")
    if not equals or not dot or not entity or not param or not text.strip():
        problems.add(place, "want ENTITY.PARAM=VALUE")
        return None
    split = "," in text and not text.lstrip().startswith(("[", "{", "'", '"'))
    try:
        value = _yaml(f"[{text}]" if split else text, place)
    except PlanError as error:
        problems.add(place, f"want a value or a list of values; {str(error).splitlines()[0].partition(': ')[2]}")
        return None
    nodes = tuple(replace(node, place=place) for node in (value.items if isinstance(value, Sequence) else (value,)))
    if not nodes:
        problems.add(place, "want at least one value; got an empty list")
        return None
    return Written(place, Scalar(place, entity, True), Scalar(place, param, True), nodes, override=True, split=split)


def _yaml(text: str, place: Place) -> Node:
    """A value or a list of values; also several quoted ones separated by commas."""
    try:
        return parse(text, str(place))
    except PlanError:
        if not text.lstrip().startswith(("'", '"')):
            raise
    return parse(f"[{text}]", str(place))


def _assignment(
    w: Written, names: Names, parameters: Parameters, testbed: str, problems: Problems, files: ValueFiles
) -> Assignment | None:
    entity, param = names.canonical(w.entity.text), w.param.text
    try:
        entities = targets_of(names, parameters, entity, param)
    except ValueError as error:
        problems.add(w.param.place if names.kind(entity) else w.entity.place, str(error))
        return None
    if not entities:
        return None
    who = f"{names.kind(entity)} {entity}, {param}"
    for target in entities:
        if target.spec.internal:
            problems.add(w.param.place, f"{who}: is set by the testbed; want a parameter that a plan sets")
            return None
        if testbed not in target.spec.testbeds:
            able = ", ".join(sorted(target.spec.testbeds)) or "none"
            problems.add(w.param.place, f"{who}: testbed {testbed} can't have it; these can: {able}")
            return None
    span = None
    types = {target.spec.type: None for target in entities}
    if isinstance(w.values[0], Mapping) and len(w.values) == 1 and all(isinstance(t, NUMBER_TYPES) for t in types):
        node, kind = w.values[0], next(t for t in types if isinstance(t, NUMBER_TYPES))
        span = read_range(node, who, kind, problems)
        if span is None:
            return None
        values = span.texts() if span.steps else (span.first, span.last)
        w = replace(w, values=tuple(Scalar(node.place, text, True) for text in values))
    texts, columns = _levels(w, entities, who, problems, files)
    if not texts:
        return None
    places = tuple(node.place for node in w.values)
    targets = tuple(replace(target, values=columns[target.spec.type]) for target in entities)
    base = OVERRIDE if w.override else 0
    rank = 0 if names.kind(entity) == "group" else 2 if entity == entities[0].entity else 1
    drawn = None if span is None or span.steps else span
    return Assignment(entity, param, w.place, texts, targets, base + rank, places, drawn)


def _levels(
    w: Written, targets: list[Target], who: str, problems: Problems, files: ValueFiles
) -> tuple[tuple[str, ...], dict[ValueType, tuple[Value, ...]]]:
    """The values as text, and parsed by each type; no texts after a fault."""
    types = list(dict.fromkeys(target.spec.type for target in targets))
    rows: list[tuple[Value, ...]] = []
    texts: list[str] = []
    bad = False
    for node in w.values:
        try:
            row = tuple(value_of(node, kind, files) for kind in types)
        except ValueError as error:
            quoted = f"; a value with a comma wants quotes: --set '{_key_of(w)}=\"…, …\"'" if w.split else ""
            problems.add(node.place, f"{who}: {error}{quoted}")
            bad = True
            continue
        text = shown(node.value) if isinstance(node, Scalar) else ""
        if row in rows:
            problems.add(node.place, f"{who}: want every value once; got {show(text)} again")
            bad = True
        rows.append(row)
        texts.append(text)
    if bad:
        return (), {}
    return tuple(texts), dict(zip(types, zip(*rows, strict=True), strict=True))


def _key_of(w: Written) -> str:
    """ENTITY.PARAM, as --set takes it."""
    return f"{w.entity.text}.{w.param.text}"


def value_of(node: Node, kind: ValueType, files: ValueFiles | None = None) -> Value:
    """The value of a node for that type, or its formula.  Raises ValueError "want …; got …"."""
    if not isinstance(node, Scalar) or node.empty:
        raise ValueError(f"want {kind.want}; got {what(node)}")
    if isinstance(kind, NUMBER_TYPES) and isinstance(node.value, str):
        with suppress(ValueError, ArithmeticError):
            return kind.parse(node.value)
        if is_meant(node.value):
            try:
                return Formula(node.value)
            except FormulaError as error:
                raise FormulaError(f"{show(node.value)}: {error}") from error
    raw = files.value(kind, node.value) if files else node.value
    try:
        return kind.parse(raw)
    except ValueError as error:
        raise ValueError(f"{error}{value_meant(kind, node.value)}") from error
    except ArithmeticError as error:
        raise ValueError(f"want {kind.want}; got {what(node)}") from error


def _keys(assignment: Assignment) -> set[tuple[str, str]]:
    return {target.key for target in assignment.targets}


def _resolve(assignments: list[Assignment], names: Names, problems: Problems) -> tuple[Assignment, ...]:
    """Leaves each target to the most specific tuple that sets it."""
    owner: dict[tuple[str, str], int] = {}
    for index, assignment in enumerate(assignments):
        for target in assignment.targets:
            other = owner.get(target.key)
            if other is None or assignments[other].rank < assignment.rank:
                owner[target.key] = index
            elif assignments[other].rank == assignment.rank:
                first = assignments[other]
                by = "" if first.entity == assignment.entity else f" (by {names.kind(first.entity)} {first.entity})"
                problems.add(
                    assignment.place,
                    f"{target.kind} {target.entity}, {assignment.param}: set twice, first at {first.place}{by}",
                )
                break
    kept = []
    for index, assignment in enumerate(assignments):
        targets = tuple(t for t in assignment.targets if owner[t.key] == index)
        if targets:
            kept.append(replace(assignment, targets=targets))
        elif not problems and not any(assignments[owner[k]].rank >= OVERRIDE for k in _keys(assignment)):
            who = f"{names.kind(assignment.entity)} {assignment.entity}, {assignment.param}"
            problems.add(assignment.place, f"{who}: has no effect, since more specific tuples set it for every entity")
    return tuple(kept)


def targets_of(names: Names, parameters: Parameters, entity: str, param: str) -> list[Target]:
    """The targets of an (entity, parameter) pair; a port parameter of a switch applies to each of its ports.

    Raises ValueError that says who has no such parameter.
    """
    if not names.kind(entity):
        raise ValueError(names.unknown(entity))
    return [t for member in names.members(entity) for t in _of_member(names, parameters, entity, member, param)]


def _of_member(names: Names, parameters: Parameters, entity: str, member: str, param: str) -> Iterator[Target]:
    kind = names.kind(member)
    spec = parameters.find(kind, param)
    if spec:
        yield Target(member, kind, *spec)
        return
    of_port = parameters.find("port", param) if kind == "switch" else None
    if of_port is None:
        raise ValueError(_no_parameter(names, parameters, entity, member, param))
    for port in names.topology.ports(member):
        yield Target(port, "port", *of_port)


def _no_parameter(names: Names, parameters: Parameters, entity: str, member: str, param: str) -> str:
    kind = names.kind(member)
    who = f"{names.kind(entity)} {entity}: "
    if member != entity:
        who += f"its {kind} {member} has "
    known = parameters.words(kind) + (parameters.words("port") if kind == "switch" else [])
    others = [k for k in KINDS if k != kind and parameters.find(k, param)]
    if others:
        return f"{who}no parameter named {show(param)}, which is one of a {' or '.join(others)}"
    hint = name_meant(param, known) or suggest(param, known) or f"; testctl params {kind} lists those there are"
    as_sysctl = (
        f" (another sysctl by its whole name: net.ipv4.{show(param)})" if parameters.like_sysctl(param, hint) else ""
    )
    return f"{who}no parameter named {show(param)}{hint}{as_sysctl if kind == 'host' else ''}"
