# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a plan, for editors: made from the same specs that the loader uses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from testctl_agent.params import registry
from testctl_agent.params.types import Changing, Largest
from testctl_agent.spec.largest import ICMP
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount

from testctl.plan.field_tables import (
    ANY,
    BOUNDS,
    EXPECT,
    FIGURE,
    PLAN,
    RATIOS,
    WITH_FAILS_WITH,
    closed,
    integer_of,
    one_or_more,
    schema_of,
)
from testctl.plan.fields import Json
from testctl.plan.figures import MAX_FIGURES
from testctl.plan.numbers import NUMBER_TYPES
from testctl.plan.ranges import RANGE
from testctl.plan.registry import MetricInfo
from testctl.plan.request_figures import REQUEST_KINDS
from testctl.plan.sweep_figures import SWEEP_KINDS, needed_fields, unused_fields
from testctl.plan.temporal import LIMITS, MODES, WINDOW, WITH_MODES
from testctl.plan.topology import topology_dir, topology_names
from testctl.plan.topology_file import TopologyFile, read_topology

FORMULA = r"^(?=.*(\b(bdp|rtt|rate|mtu)\b|[a-z0-9_]\.[a-z]|[-+*/(])).*$"
"""Of a quantity of the path, an ENTITY.PARAM, or a sign; the loader reads the rest."""
OWN_TOPOLOGY = r"^[^/].*/.*\.(yaml|json)$"


def schema(*, metrics: Mapping[str, MetricInfo] | None = None) -> Json:
    """A JSON Schema (draft 2020-12) that takes the plans the loader takes and flags wrong fields.

    It knows the fields, topologies, parameters with their values, and metrics; not which entities
    a plan has, nor what only the loader can check.
    """
    others = registry.installed_specs()
    specs = {kind: {**known, **others.get(kind, {})} for kind, known in registry.specs().items()}
    items = schema_of(FIGURE, metric=_metric(metrics)) | {"allOf": _figure_rules()}
    made = {
        "topology": _topology(topology_dir()),
        "tuples": {"type": "array", "minItems": 1, "items": _tuple(specs)},
        "expect": {"type": "array", "items": _expectation(metrics)},
        "figures": {"type": "array", "maxItems": MAX_FIGURES, "items": items},
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:testctl:plan"}
    about = {"title": "A testctl plan", "description": "Which points are run, and what has to hold in them"}
    defs = {"range": schema_of(RANGE), "formula": {"type": "string", "pattern": FORMULA}}
    return {**head, **about, **schema_of(PLAN, **made), "$defs": defs}


def _topology(directory: Path) -> Json:
    topologies = [read_topology(directory / f"{name}.yaml") for name in topology_names(directory)]
    with_parameters = [closed({t.name: _parameters(t)}, (t.name,)) for t in topologies]
    own = {"type": "string", "pattern": OWN_TOPOLOGY, "description": "A file; its path begins at the plan"}
    number = {"type": "integer", "description": "A parameter of the file"}
    numbers = {"type": "object", "additionalProperties": number, "description": "A file; its path begins at the plan"}
    filled = {"type": "object", "minProperties": 1, "maxProperties": 1, "patternProperties": {OWN_TOPOLOGY: numbers}}
    filled["additionalProperties"] = False
    names = [{"const": t.name, "description": t.about} for t in topologies]
    return {"anyOf": [*names, own, *with_parameters, filled]}


def _parameters(topology: TopologyFile) -> Json:
    fields = {
        p.name: {**integer_of(p.least, p.most), "description": f"{p.least} to {p.most}; default {p.default}"}
        for p in topology.parameters
    }
    return {**closed(fields), "description": topology.about}


def _tuple(specs: Mapping[str, Mapping[str, ParamSpec]]) -> Json:
    """[entity, parameter, value or values]: the parameter says which values there are."""
    by_name: dict[str, list[ParamSpec]] = {}
    patterns: list[ParamSpec] = []
    for of_kind in specs.values():
        for name, spec in of_kind.items():
            if spec.internal:
                continue
            if spec.pattern:
                patterns.append(spec)
            else:
                by_name.setdefault(name, []).append(spec)
    rules = [
        {
            "if": {"prefixItems": [True, {"const": name}]},
            "then": {"prefixItems": [True, True, _values(kinds)]},
        }
        for name, kinds in sorted(by_name.items())
    ]
    names: list[Json] = [
        {"const": name, "description": "; ".join(f"{spec.kind}: {spec.help}" for spec in kinds)}
        for name, kinds in sorted(by_name.items())
    ]
    names += [{"pattern": f"^(?:{spec.pattern})$", "description": spec.help} for spec in patterns]
    return {
        "type": "array",
        "minItems": 3,
        "maxItems": 3,
        "prefixItems": [
            {"type": "string", "description": "host, switch, switch:neighbour (a port), flow or group"},
            {"type": "string", "anyOf": names, "description": "What is set; `testctl params` lists them"},
            {
                "anyOf": [*one_or_more(ANY)["anyOf"], {"$ref": "#/$defs/range"}],
                "description": "A value, or a list or a range of values to sweep",
            },
        ],
        "allOf": rules,
    }


def _values(specs: Sequence[ParamSpec]) -> Json:
    """The values that a parameter takes, of whatever kind of entity."""
    wanted = "; or ".join(dict.fromkeys(spec.type.want for spec in specs))
    numbers = [spec.type for spec in specs if isinstance(spec.type, NUMBER_TYPES)]
    formula = [{"$ref": "#/$defs/formula"}] if numbers else []
    values = one_or_more(_either([*map(_value, specs), *formula]))
    if not numbers:
        return {**values, "description": f"{wanted}; or a list to sweep"}
    values["anyOf"].append({"$ref": "#/$defs/range"})
    return {**values, "description": f"{wanted}; or a formula such as 0.5 bdp; or a list or a range to sweep"}


def _value(spec: ParamSpec) -> Json:
    """A value of a parameter; of a quantity with the units there are, and what editors say of another one."""
    if not isinstance(spec.type, Amount):
        return spec.type.schema()
    units = spec.type.of.units
    unit = "|".join(sorted(map(re.escape, units), key=len, reverse=True))
    number = rf"\s*[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*({unit})\s*"
    first = rf"{number}({ICMP}\s*)?" if isinstance(spec.type, Largest) else number
    forms = [first, *([spec.type.none] if spec.type.none else [])]
    if isinstance(spec.type, Changing):
        forms += [rf"({'|'.join(forms)})(;\s*[0-9][^ ;]* [^;]+)+", *([r"[^/;][^;]*/[^;]*"] if spec.type.file else [])]
    pattern = f"^({'|'.join(forms)})$" if len(forms) > 1 else f"^{first}$"
    types = ["string", "number"] if "" in units else ["string"]
    return {"type": types, "pattern": pattern, "patternErrorMessage": f"want {spec.type.want}"}


def _either(schemas: list[Json]) -> Json:
    """What any of them takes.  A number may always be written as text, as the loader takes both."""
    either: list[Json] = []
    for schema in (s for i, s in enumerate(schemas) if s not in schemas[:i]):
        either.append(schema)
        if schema.get("type") == "integer":
            either.append({"type": "string", "pattern": "^-?[0-9]+$"})
        elif numbers := [str(v) for v in schema.get("enum", ()) if not isinstance(v, bool | str)]:
            either.append({"enum": numbers})
    return {"anyOf": either}


def _expectation(metrics: Mapping[str, MetricInfo] | None) -> Json:
    needs = [{"required": [name]} for name in (*BOUNDS, "paper")]

    def only(name: str, among: Sequence[str]) -> Json:
        return {"required": [name], "properties": {other: False for other in EXPECT if other not in among}}

    over_time = [
        only(mode, [name for name in WITH_MODES if name == mode or name not in MODES])
        | {"anyOf": [{"required": [name]} for name in LIMITS]}
        for mode in MODES
    ]
    measured = only("metric", [name for name in EXPECT if name not in ("fails_with", *MODES, *WINDOW)])
    return {
        **schema_of(EXPECT, metric=_metric(metrics)),
        "oneOf": [{**measured, "anyOf": needs}, only("fails_with", WITH_FAILS_WITH), *over_time],
        "dependentRequired": {**{ratio: ["than"] for ratio in RATIOS}, "tolerance": ["equals"]},
    }


def _figure_rules() -> list[Json]:
    """Which fields a kind needs, and which it has no use for."""
    alone = (*REQUEST_KINDS, *SWEEP_KINDS)
    kinds = (*alone, "")
    return [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
            if kind
            else {"not": {"properties": {"kind": {"enum": list(alone)}}, "required": ["kind"]}},
            "then": {"required": list(needed_fields(kind)), "properties": dict.fromkeys(unused_fields(kind), False)},
        }
        for kind in kinds
    ]


def _metric(metrics: Mapping[str, MetricInfo] | None) -> Json:
    if metrics is None:
        return {"type": "string"}
    return {"anyOf": [{"const": name, "description": _of_metric(metrics[name])} for name in sorted(metrics)]}


def _of_metric(info: MetricInfo) -> str:
    text = str(getattr(info, "help", ""))
    return f"{text} ({info.unit})" if info.unit else text
