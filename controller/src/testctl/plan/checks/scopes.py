# SPDX-License-Identifier: Apache-2.0
"""Parameters that must agree: along a flow's path (MTU), or over a whole testbed (kernel)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from testctl_agent.spec.types import Value, shown

from testctl.plan.diagnostics import Place, Problems
from testctl.plan.model import Assignment
from testctl.plan.names import Names
from testctl.plan.registry import Parameters
from testctl.plan.space import Space

_MAX_CHECKED = 10_000  # combinations of the factors that set one parameter


@dataclass(frozen=True)
class _Setting:
    """The setter of an entity's parameter: a tuple (index) or the default (index -1); values by level."""

    who: str
    index: int
    values: tuple[Value, ...]


Settings = dict[tuple[str, str], _Setting]


def check_distributed(
    assignments: Sequence[Assignment],
    defaults: Mapping[str, Mapping[str, Value]],
    names: Names,
    parameters: Parameters,
    space: Space,
    problems: Problems,
) -> None:
    """Add a problem for every parameter that has to agree among entities and does not at some point."""
    settings: Settings = {}
    scoped: dict[tuple[str, str], str] = {}
    for kind, specs in parameters.specs.items():
        scoped |= {(kind, name): spec.scope for name, spec in specs.items() if spec.scope != "entity"}
    for entity, values in defaults.items():
        settings |= {
            (entity, name): _Setting(f"{names.kind(entity)} {entity}", -1, (value,)) for name, value in values.items()
        }
    for index, assignment in enumerate(assignments):
        for t in assignment.targets:
            if t.spec.scope != "entity":
                scoped[t.kind, t.param] = t.spec.scope
            settings[t.entity, t.param] = _Setting(f"{t.kind} {t.entity}", index, t.values)
    check = _Check(assignments, space, problems)
    for name in dict.fromkeys(name for (_, name), scope in scoped.items() if scope == "path"):
        for flow in names.flows:
            links = names.topology.links_between(flow.source, flow.sink)
            way = " - ".join(dict.fromkeys(entity for link in links for entity in link))
            where = f"every entity of the path of flow {flow.name} ({way})"
            check.same(settings, list(_along(links, name, names, scoped)), name, where)
    for (kind, name), scope in scoped.items():
        if scope == "testbed":
            check.same(settings, _of_kind(kind, names), name, f"every {kind} of the testbed")


def _along(
    links: list[tuple[str, str]], name: str, names: Names, scoped: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    """The entities of a path that have the parameter: the switch, or its ports on the path."""
    for entity in dict.fromkeys(entity for link in links for entity in link):
        if (names.kind(entity), name) in scoped:
            yield entity
        elif names.kind(entity) == "switch" and ("port", name) in scoped:
            for a, b in links:
                if entity in (a, b):
                    yield f"{entity}:{b if entity == a else a}"


def _of_kind(kind: str, names: Names) -> list[str]:
    kinds = {"host": tuple(names.topology.hosts), "switch": names.topology.switches, "port": names.topology.all_ports}
    return list(kinds.get(kind, tuple(flow.name for flow in names.flows)))


@dataclass(frozen=True)
class _Check:
    assignments: Sequence[Assignment]
    space: Space
    problems: Problems

    def same(self, settings: Settings, entities: list[str], name: str, where: str) -> None:
        have = [settings[e, name] for e in entities if (e, name) in settings]
        if not have:
            return
        first = next((s for s in have if s.index >= 0), have[0])
        place = self.assignments[first.index].place if first.index >= 0 else Place("defaults")
        for entity in entities:
            if (entity, name) not in settings:
                got = f"none on {'port ' if ':' in entity else ''}{entity}"
                self.problems.add(place, f"{first.who}, {name}: want it the same on {where}; got {got}")
                return
        for other in have:
            if other.index != first.index and (pair := self._differ(first, other)):
                own, theirs = map(shown, pair)
                later = self.assignments[other.index].place if other.index >= 0 else place
                self.problems.add(
                    later, f"{other.who}, {name}: want it the same on {where}; got {theirs}, and {own} on {first.who}"
                )
                return

    def _differ(self, setting: _Setting, other: _Setting) -> tuple[Value, Value] | None:
        """The values of both at a point where they differ; None if there is none."""
        pairs = product(range(len(setting.values)), range(len(other.values)))
        for number, (i, j) in enumerate(pairs):
            if setting.values[i] == other.values[j]:
                continue
            fixed = {index: level for index, level in ((setting.index, i), (other.index, j)) if index >= 0}
            if number >= _MAX_CHECKED or self.space.complete(fixed) is not None:
                return setting.values[i], other.values[j]
        return None
