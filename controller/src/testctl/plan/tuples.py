# SPDX-License-Identifier: Apache-2.0
"""Reads `tuples` and the --set words into assignments: what each sets, and which wins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value, ValueType, shown

from testctl.plan.diagnostics import Place, Problems, show, suggest
from testctl.plan.model import Assignment, Target
from testctl.plan.names import Names
from testctl.plan.registry import Parameters
from testctl.plan.targets import Aim, aims_of, rank
from testctl.plan.yaml_reader import Node, Scalar, Sequence, parse, what

MOST_TUPLES = 1000
OVERRIDE = 10  # added to the rank of what --set gives


@dataclass(frozen=True)
class Written:
    """A tuple as it stands in the file or on the command line."""

    place: Place
    entity: Scalar
    param: Scalar
    values: tuple[Node, ...]
    override: bool = False
    split: bool = False
    """Whether its values were one word with commas."""


def read_tuples(
    node: Node | None,
    overrides: Iterable[str],
    names: Names,
    parameters: Parameters,
    testbed: str,
    problems: Problems,
    without: Iterable[str] = (),
) -> tuple[tuple[Assignment, ...], tuple[Assignment, ...]]:
    """The assignments of a plan, in its order, and those left out; what --set adds comes last.

    without: ENTITY.PARAM words, the tuples to leave out
    """
    written = _from_file(node, problems)
    from_file = [a for w in written if (a := _assignment(w, names, parameters, testbed, problems))]
    left_out = _left_out(from_file, without, problems)
    from_file = [a for a in from_file if a not in left_out]
    added = []
    for word in overrides:
        w = _from_override(word, problems)
        a = _assignment(w, names, parameters, testbed, problems) if w else None
        if a:
            added.append(a)
    for new in list(added):
        for index, old in enumerate(from_file):
            if old.rank < OVERRIDE and old.entity == new.entity and _keys(old) == _keys(new):
                from_file[index] = new
                added.remove(new)
                break
    return _resolve([*from_file, *added], names, problems), left_out


def _left_out(assignments: list[Assignment], without: Iterable[str], problems: Problems) -> tuple[Assignment, ...]:
    """The tuples that --without names, each as it is written."""
    found: list[Assignment] = []
    for word in without:
        mine = [a for a in assignments if a.key == word]
        if not mine:
            keys = [a.key for a in assignments]
            hint = suggest(word, keys) or f"; there are {', '.join(keys)}"
            problems.add(Place(f"--without {show(word)}"), f"want ENTITY.PARAM of a tuple of the plan{hint}")
        found += mine
    return tuple(found)


def _from_file(node: Node | None, problems: Problems) -> list[Written]:
    if node is None:
        return []
    shape = "[entity, parameter, value], or [entity, parameter, [value, …]] to sweep"
    if not isinstance(node, Sequence) or not node.items:
        problems.add(node.place, f"tuples: want a list of {shape}; got {what(node)}")
        return []
    if len(node.items) > MOST_TUPLES:
        problems.add(node.place, f"tuples: want at most {MOST_TUPLES}; got {len(node.items)}")
        return []
    found = []
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
        found.append(Written(item.place, entity, param, values))
    return found


def _from_override(word: str, problems: Problems) -> Written | None:
    """ENTITY.PARAM=VALUE; several values with commas between or as a YAML list; a value with a comma in quotes."""
    place = Place(f"--set {show(word)}")
    key, equals, text = word.partition("=")
    entity, dot, param = key.strip().partition(".")
    if not equals or not dot or not entity or not param or not text.strip():
        problems.add(place, "want ENTITY.PARAM=VALUE")
        return None
    split = "," in text and not text.lstrip().startswith(("[", "'", '"'))
    try:
        value = _yaml(f"[{text}]" if split else text, place)
    except PlanError as error:
        problems.add(place, f"want a value or a list of values; {str(error).splitlines()[0].partition(': ')[2]}")
        return None
    nodes = tuple(_move(node, place) for node in (value.items if isinstance(value, Sequence) else (value,)))
    if not nodes:
        problems.add(place, "want at least one value; got an empty list")
        return None
    return Written(place, Scalar(place, entity, True), Scalar(place, param, True), nodes, override=True, split=split)


def _yaml(text: str, place: Place) -> Node:
    """A value or a list of them; also of several in quotes with commas between."""
    try:
        return parse(text, str(place))
    except PlanError:
        if not text.lstrip().startswith(("'", '"')):
            raise
    return parse(f"[{text}]", str(place))


def _move(node: Node, place: Place) -> Node:
    return replace(node, place=place)


def _assignment(
    w: Written, names: Names, parameters: Parameters, testbed: str, problems: Problems
) -> Assignment | None:
    entity, param = w.entity.text, w.param.text
    try:
        aims = aims_of(names, parameters, entity, param)
    except ValueError as error:
        problems.add(w.param.place if names.kind(entity) else w.entity.place, str(error))
        return None
    if not aims:
        return None
    who = f"{names.kind(entity)} {entity}, {param}"
    for aim in aims:
        if aim.spec.internal:
            problems.add(w.param.place, f"{who}: is set by the testbed; want a parameter that a plan sets")
            return None
        if testbed not in aim.spec.testbeds:
            able = ", ".join(sorted(aim.spec.testbeds)) or "none"
            problems.add(w.param.place, f"{who}: testbed {testbed} can't have it; these can: {able}")
            return None
    texts, columns = _levels(w, aims, who, problems)
    if not texts:
        return None
    places = tuple(node.place for node in w.values)
    targets = tuple(Target(a.entity, a.kind, a.param, a.spec, columns[a.spec.type]) for a in aims)
    base = OVERRIDE if w.override else 0
    return Assignment(entity, param, w.place, texts, targets, base + rank(names, entity, aims[0]), places)


def _levels(
    w: Written, aims: list[Aim], who: str, problems: Problems
) -> tuple[tuple[str, ...], dict[ValueType, tuple[Value, ...]]]:
    """The values as shown, and per type of value as parsed; no texts when any was refused."""
    types = list(dict.fromkeys(aim.spec.type for aim in aims))
    rows: list[tuple[Value, ...]] = []
    texts: list[str] = []
    bad = False
    for node in w.values:
        try:
            row = tuple(value_of(node, kind) for kind in types)
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


def value_of(node: Node, kind: ValueType) -> Value:
    """The value of a node for that type.  Raises ValueError "want …; got …"."""
    if not isinstance(node, Scalar) or node.empty:
        raise ValueError(f"want {kind.want}; got {what(node)}")
    try:
        return kind.parse(node.value)
    except ArithmeticError as error:
        raise ValueError(f"want {kind.want}; got {what(node)}") from error


def _keys(assignment: Assignment) -> set[tuple[str, str]]:
    return {(t.entity, t.param) for t in assignment.targets}


def _resolve(assignments: list[Assignment], names: Names, problems: Problems) -> tuple[Assignment, ...]:
    """Leaves each target to the most specific tuple that sets it."""
    owner: dict[tuple[str, str], int] = {}
    for index, assignment in enumerate(assignments):
        for target in assignment.targets:
            key = (target.entity, target.param)
            other = owner.get(key)
            if other is None or assignments[other].rank < assignment.rank:
                owner[key] = index
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
        targets = tuple(t for t in assignment.targets if owner[t.entity, t.param] == index)
        if targets:
            kept.append(replace(assignment, targets=targets))
        elif not problems and not any(assignments[owner[k]].rank >= OVERRIDE for k in _keys(assignment)):
            who = f"{names.kind(assignment.entity)} {assignment.entity}, {assignment.param}"
            problems.add(assignment.place, f"{who}: has no effect, since more specific tuples set it for every entity")
    return tuple(kept)
