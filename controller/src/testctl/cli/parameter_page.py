# SPDX-License-Identifier: Apache-2.0
"""What `testctl params` says of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from testctl_agent.params import registry
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Choice, Int, Switch, ValueType, shown

from testctl.cli.search import find
from testctl.plan.registry import KINDS, Parameters

SCOPES = {
    "entity": "each entity has its own value",
    "path": "every entity of a flow's path has to have the same value",
    "testbed": "every entity of that kind has to have the same value",
}
ROLES = {
    "state": "set before the traffic and restored afterwards",
    "flow": "an option of the flow's traffic",
    "collector": "selects what is recorded",
    "traffic": "hosts and a flow that are made of it before a point is run",
    "testbed": "of the testbed, before an agent starts",
}
ENTITIES = {"host": "hosts", "switch": "switch", "port": "switch:receiver", "flow": "flows"}
"""An entity of each kind, for an example."""
_INDENT = 11
"""Of the lines of a page after the first one of a fact."""


@dataclass(frozen=True)
class Row:
    """A parameter of a kind of entity, by the name that a plan writes."""

    kind: str
    name: str
    spec: ParamSpec

    def to_json(self) -> dict[str, Any]:
        spec = self.spec
        return {"kind": self.kind, "name": self.name, "want": spec.type.want, "help": spec.help, "scope": spec.scope,
                "default": spec.default, "testbeds": sorted(spec.testbeds), "units": units_of(spec.type)}  # fmt: skip


def rows_of(word: str | None) -> tuple[list[Row], bool]:
    """The parameters that a word means, and whether it is the name of one of them.

    A switch takes its ports' parameters too.  Raises PlanError when there are none.
    """
    own, others = registry.specs(), registry.installed_specs()
    every = [Row(kind, name, spec) for by_kind in (own, others) for kind, specs in by_kind.items()
             for name, spec in specs.items() if not spec.internal]  # fmt: skip
    if word is None:
        return every, False
    kinds = _kinds(word)
    if kinds:
        return [row for row in every if row.kind in kinds], False
    parameters = Parameters(registry)
    exact = [row for row in every if row.name == word]
    exact = exact or [Row(kind, word, match[1]) for kind in KINDS if (match := parameters.find(kind, word))]
    exact = [row for row in exact if not row.spec.internal]
    if exact:
        return exact, True
    texts = {row.name: row.spec.help for row in every}
    texts |= {name: f"sysctl net.ipv4.{name}" for name in parameters.words("host") if name not in texts}
    texts |= dict.fromkeys(KINDS, "")
    names = [name for name in find(word, texts, "entity or parameter") if name not in KINDS]
    if len(names) == 1:
        return rows_of(names[0])
    rows = []
    for name in names:
        listed = [row for row in every if row.name == name]
        if not listed and (sysctl := parameters.find("host", name)):
            listed = [Row("host", name, sysctl[1])]
        rows += listed
    return rows, False


def _kinds(word: str) -> tuple[str, ...]:
    word = word.strip().lower()
    kind = word if word in KINDS else next((k for k in KINDS if word in (f"{k}s", f"{k}es")), "")
    return ("switch", "port") if kind == "switch" else (kind,) if kind else ()


def page(row: Row) -> str:
    spec = row.spec
    of = "a switch's port; set on a switch it is set on each of its ports" if row.kind == "port" else f"a {row.kind}"
    lines = [
        ("", spec.help),
        ("of", of),
        ("value", spec.type.want),
        ("units", ", ".join(units_of(spec.type))),
        ("default", "as the testbed has it" if spec.default is None else shown(spec.default)),
        ("scope", SCOPES[spec.scope]),
        ("use", ROLES[spec.role]),
        ("testbeds", ", ".join(sorted(spec.testbeds))),
        ("example", example(row)),
    ]
    return in_lines(row.name, lines)


def in_lines(name: str, lines: Iterable[tuple[str, str]]) -> str:
    """A page: the name, and a line for each fact; those without text are left out."""
    return f"{name}\n" + "".join(f"  {about:<9}{text}\n" if about else f"  {text}\n" for about, text in lines if text)


def units_of(kind: ValueType) -> list[str]:
    """The units that a value may have, such as 10gbit; for a plain number its own unit."""
    if isinstance(kind, Amount):
        return [unit for unit in kind.of.units if unit]
    return [kind.unit] if isinstance(kind, Int) and kind.unit else []


def example(row: Row) -> str:
    """A tuple of a plan that sets it, and the others without which it has no use; "" where its type gives no value."""
    value = _value(row.spec)
    entity = "all" if row.spec.scope == "path" else ENTITIES[row.kind]
    tuples = [f"- [{entity}, {row.name}, {value}]", *(f"- {other}" for other in row.spec.beside)]
    return f"\n{' ' * _INDENT}".join(tuples) if value else ""


def _value(spec: ParamSpec) -> str:
    kind = spec.type
    if spec.example:
        return spec.example
    if isinstance(kind, Choice):
        return shown(next((v for v in kind.values if v != spec.default), kind.values[0]))
    if isinstance(kind, Switch):
        return "off" if spec.default is True else "on"
    if isinstance(kind, Amount):
        amounts = kind.of.want.partition("such as ")[2].replace(" or ", ", ").split(", ")
        return next((amount for amount in amounts if _takes(kind, amount)), "")
    if isinstance(kind, Int):
        return next((str(n) for n in (1500, 10, 1, kind.least) if _takes(kind, n)), "")
    return ""


def _takes(kind: ValueType, raw: object) -> bool:
    try:
        kind.parse(raw)
    except ValueError:
        return False
    return True
