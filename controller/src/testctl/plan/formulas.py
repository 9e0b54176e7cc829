# SPDX-License-Identifier: Apache-2.0
"""Checks the formulas of a plan, and gives them their values at a point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Bytes, Duration, Quantity, Rate

from testctl.core import routes
from testctl.core.path import changing
from testctl.core.path_facts import base_path, base_rtt_ns
from testctl.core.point import Point, PointFlow
from testctl.plan.conditions import Reader
from testctl.plan.diagnostics import Place, show, suggest
from testctl.plan.formula import DIMENSIONS, PATH_QUANTITIES, SIZES, Dimension, Formula, FormulaError, unit_name
from testctl.plan.model import Levels, Target, WrittenPlan
from testctl.plan.numbers import NUMBER_TYPES, dimension_of, size_of, value_shown, written
from testctl.plan.registry import plain
from testctl.plan.yaml_reader import Scalar

_OF_PATH: Mapping[str, type[Quantity]] = dict(zip(PATH_QUANTITIES, (Bytes, Duration, Rate, Bytes), strict=True))
_MTU = 1500
"""Bytes, of hosts whose MTU the plan does not set."""

Settings = dict[str, dict[str, Value]]


def read_formulas(reader: Reader) -> dict[str, int] | None:
    """ENTITY.PARAM in formulas -> the index of the tuple that sets it; None where a plan has no formula.

    Faults that a formula has at every point are among the reader's problems.
    """
    named: dict[str, int] = {}
    some = False
    for assignment in reader.assignments:
        for target in {of.spec.type: of for of in reversed(assignment.targets)}.values():
            for value, place in zip(target.values, assignment.places, strict=True):
                if isinstance(value, Formula):
                    some = True
                    _check(value, target, place, reader, named)
    return named if some else None


def _who(target: Target) -> str:
    return f"{target.kind} {target.entity}, {target.param}"


def _check(formula: Formula, target: Target, place: Place, reader: Reader, named: dict[str, int]) -> None:
    """Finds the tuples that the formula names, and compares units."""
    problems, kind, who = reader.problems, target.spec.type, _who(target)
    assert isinstance(kind, NUMBER_TYPES), "only such a type has formulas"
    if target.spec.scope != "entity":
        problems.add(place, f"{who}: want a value, which has to be the same on several entities; got a formula")
        return

    def dimension(name: str) -> Dimension:
        if name in _OF_PATH:
            return DIMENSIONS[_OF_PATH[name]]
        of = reader.assignments[named[name]].targets[0].spec.type
        if not isinstance(of, NUMBER_TYPES):
            raise FormulaError(f"want numbers; got {name}, which is {of.want}")
        return dimension_of(of)

    for name in formula.names:
        if name in _OF_PATH or name in named:
            continue
        if "." not in name:
            hint = suggest(name, _OF_PATH) or reader.meant(name)
            want = f"want {', '.join(_OF_PATH)} or ENTITY.PARAM of a tuple"
            problems.add(place, f"{who}: {show(formula)}: {want}; got {show(name)}{hint}")
            return
        index = reader.tuple_of(Scalar(place, name, True), f"{who}: {show(formula)}")
        if index is None:
            return
        named[name] = index
    try:
        got = formula.dimension(dimension)
    except FormulaError as error:
        problems.add(place, f"{who}: {show(formula)}: {error}")
        return
    if got != dimension_of(kind):
        problems.add(place, f"{who}: want {unit_name(dimension_of(kind))}; got {unit_name(got)}, {show(formula)}")


class _Lazy(dict[str, Value]):
    """The settings of an entity, whose formulas get their values when these are read."""

    def __init__(self, values: Mapping[str, Value], value: Callable[[str, Formula], Value]) -> None:
        super().__init__(values)
        self._value = value

    def __getitem__(self, name: str) -> Value:
        given = super().__getitem__(name)
        if isinstance(given, Formula):
            given = self[name] = self._value(name, given)
        return given

    def get(self, name: str, default: Any = None) -> Any:
        given = super().get(name, default)
        return self[name] if isinstance(given, Formula) else given


class Formulas:
    """The formulas of a plan at a point.

    settings  with formulas; the options of flows are among them
    flows     makes the point's flows of such settings
    """

    def __init__(
        self,
        plan: WrittenPlan,
        levels: Levels,
        settings: Settings,
        flows: Callable[[Settings], Sequence[PointFlow]],
    ) -> None:
        self._plan, self._levels, self._flows = plan, levels, flows
        self._targets = {
            target.key: (index, target) for index, a in enumerate(plan.assignments) for target in a.targets
        }
        self._settings: Settings = {
            entity: _Lazy(values, partial(self._value, entity)) for entity, values in settings.items()
        }
        self._point = Point("", settings=self._settings, topology=plan.topology)
        self._open: list[tuple[str, str]] = []
        self._made: list[PointFlow] = []
        self._paths: dict[tuple[str, str], Fraction] = {}

    def settled(self) -> Settings:
        """The settings with the value of each formula in its place.  Raises PlanError with the formula's place."""
        return {entity: {name: values[name] for name in values} for entity, values in self._settings.items()}

    def _value(self, entity: str, param: str, formula: Formula) -> Value:
        """The value of a formula, as settings have it."""
        key = entity, param
        index, target = self._targets[key]
        kind = target.spec.type
        assert isinstance(kind, NUMBER_TYPES), "only such a type has formulas"
        if key in self._open:
            circle = " -> ".join(".".join(each) for each in [*self._open[self._open.index(key) :], key])
            raise self._error(index, target, f"want no formula that needs its own value; got {circle}")
        self._open.append(key)
        try:
            number = formula.value(partial(self._named, entity))
            value = plain(kind.parse(written(kind, number / size_of(kind))))
        except FormulaError as error:
            raise self._error(index, target, f"{show(formula)}: {error}") from error
        except ValueError as error:
            raise self._error(index, target, f"{error}, which is {show(formula)}") from error
        self._open.pop()
        return value

    def _error(self, index: int, target: Target, text: str) -> PlanError:
        """With the place of the value and the swept values of the point."""
        of_point = zip(self._plan.assignments, self._levels, strict=True)
        swept = [f"{a.key} = {a.texts[level]}" for a, level in of_point if len(a.texts) > 1]
        place = self._plan.assignments[index].place_of(self._levels[index])
        return PlanError(f"{place}: {_who(target)}: {text}" + (f", at {', '.join(swept)}" if swept else ""))

    def _named(self, entity: str, name: str) -> Fraction:
        """The value of a name in a formula of that entity, in bits and seconds."""
        if name in _OF_PATH:
            values = {flow.name: self._of_path(name, flow) for flow in self._flows_of(entity)}
            if len(set(values.values())) > 1:
                unit = _OF_PATH[name]
                texts = [f"{flow} {unit(round(value / SIZES[unit]))}" for flow, value in values.items()]
                raise FormulaError(f"want the same {name} for all flows of {entity}; got {', '.join(texts)}")
            return next(iter(values.values()))
        targets = self._plan.assignments[(self._plan.named or {})[name]].targets
        kind = targets[0].spec.type
        assert isinstance(kind, NUMBER_TYPES), "it was checked"
        now = {target.entity: self._settings[target.entity][target.param] for target in targets}
        if len(set(now.values())) > 1:
            texts = [f"{of} {value_shown(kind, value)}" for of, value in now.items()]
            raise FormulaError(f"want one value of {name}; got {', '.join(texts)}")
        value = now[targets[0].entity]
        if isinstance(value, str):
            raise FormulaError(f"want a constant number; got {name} = {show(value)}")
        return Fraction(str(value)) * size_of(kind)

    def _flows_of(self, entity: str) -> list[PointFlow]:
        """A flow itself; of another entity the flows whose data pass it, else those whose ACKs do, else all."""
        self._made = flows = self._made or list(self._flows(self._settings))
        itself = [flow for flow in flows if flow.name == entity]
        data = itself or [flow for flow in flows if entity in self._passed(flow, back=flow.reversed)]
        return data or [flow for flow in flows if entity in self._passed(flow, back=not flow.reversed)] or flows

    def _passed(self, flow: PointFlow, *, back: bool) -> set[str]:
        """The hosts, switches and ports on a way of a flow."""
        ports = [port for hop in routes.hops(self._point, flow, back=back) for port in hop]
        return {*flow.ends, *(switch for switch, _ in ports), *(f"{switch}:{onward}" for switch, onward in ports)}

    def _of_path(self, name: str, flow: PointFlow) -> Fraction:
        if name == "mtu":
            mtus = [int(self._settings.get(host, {}).get("mtu", _MTU)) for host in flow.ends]
            return min(mtus) * SIZES[Bytes]
        key = name, flow.name
        if key not in self._paths:
            self._paths[key] = self._measured(name, flow)
        return self._paths[key]

    def _measured(self, name: str, flow: PointFlow) -> Fraction:
        """bdp, rtt or rate of a flow's path."""
        base = base_path(self._point, flow)
        rtt_ns = base_rtt_ns(self._point, flow)
        if rtt_ns is not None and (base or name == "rtt"):
            rtt, rate = rtt_ns * SIZES[Duration], Fraction(base.rate_bps if base else 0)
            return {"rate": rate, "rtt": rtt, "bdp": rate * rtt}[name]
        varies = {word for back in (False, True) for word in changing(self._point, flow, back=back)}
        got = (
            f"a {' and a '.join(sorted(varies))} that changes"
            if varies
            else "several ways"
            if rtt_ns is None
            else "none"
        )
        raise FormulaError(f"want a constant rate on the one way of flow {flow.name}, for {name}; got {got}")
