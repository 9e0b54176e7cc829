# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a plan, for editors: made from the same specs that the loader uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from testctl_agent.spec.param import ParamSpec

from testctl.plan.expect import FIELDS as EXPECT_FIELDS
from testctl.plan.expect import PAPER_FIELDS
from testctl.plan.fields import NAME
from testctl.plan.figures import FIELDS as FIGURE_FIELDS
from testctl.plan.figures import KINDS, MAX_FIGURES, MAX_TITLE
from testctl.plan.load import FIELDS, MAX_COVER, MAX_REPEAT, MAX_SEED, NEEDED
from testctl.plan.registry import MetricInfo, Registry, default_registry
from testctl.plan.sweep_figures import MAX_BY, MAX_FACET, SWEEP_KINDS, needed_fields, unused_fields
from testctl.plan.topology import topology_dir, topology_names
from testctl.plan.topology_file import read_topology

Json = dict[str, Any]
_ANY: Json = {"type": ["string", "number", "boolean"]}
_NAMED = f"^{NAME.pattern}$"
OWN_TOPOLOGY = r"^[^/].*/.*\.yaml$"
_KEY = r"^[a-z][a-z0-9_]*(:[a-z0-9_]+)?\..+$"


def schema(
    *,
    metrics: Mapping[str, MetricInfo] | None = None,
    registry: Registry | None = None,
    topologies: Path | None = None,
) -> Json:
    """A JSON Schema (draft 2020-12) that takes the plans the loader takes and flags wrong fields.

    It knows the fields, topologies, parameters with their values, and metrics; not which entities
    a plan has, nor what only the loader can check.
    """
    specs = (registry or default_registry()).specs()
    fields: Json = {
        "about": {"type": "string", "description": "What the plan is for, in one line"},
        "topology": _topology(topologies or topology_dir()),
        "flows": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": _NAMED, "maxLength": 31},
            "additionalProperties": {"type": "string", "pattern": "^[^>]+->[^>]+$"},
            "description": "NAME: HOST -> HOST",
        },
        "groups": {
            "type": "object",
            "propertyNames": {"pattern": _NAMED, "maxLength": 31},
            "additionalProperties": _some({"type": "string"}),
        },
        "tuples": {"type": "array", "minItems": 1, "items": _tuple(specs)},
        "design": {
            "oneOf": [
                {"const": "full"},
                _object({"cover": _integer(1, MAX_COVER), "seed": _integer(0, MAX_SEED)}, ("cover",)),
            ]
        },
        "repeat": _integer(1, MAX_REPEAT),
        "seed": _integer(0, MAX_SEED),
        "exclude": {"type": "array", "items": _condition(many=True)},
        "expect": {"type": "array", "items": _expectation(metrics)},
        "figures": _figures(metrics),
    }
    assert tuple(fields) == FIELDS
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A testctl plan"}
    return {**head, **_object(fields, NEEDED)}


def _object(properties: Json, required: Iterable[str] = ()) -> Json:
    found: Json = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**found, "required": list(required)} if required else found


def _integer(least: int, most: int) -> Json:
    return {"type": "integer", "minimum": least, "maximum": most}


def _some(one: Json) -> Json:
    """One, or a list of at least one."""
    return {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}


def _topology(directory: Path) -> Json:
    found = [read_topology(directory / f"{name}.yaml") for name in topology_names(directory)]
    with_parameters = [
        _object({t.name: _object({p.name: _integer(p.least, p.most) for p in t.parameters})}, (t.name,)) for t in found
    ]
    own = {"type": "string", "pattern": OWN_TOPOLOGY, "description": "a file; its path begins at the plan"}
    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    filled = {"type": "object", "minProperties": 1, "maxProperties": 1, "patternProperties": {OWN_TOPOLOGY: numbers}}
    filled["additionalProperties"] = False
    return {"anyOf": [{"enum": [t.name for t in found]}, own, *with_parameters, filled]}


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
            "then": {"prefixItems": [True, True, _some(_either([s.type.schema() for s in found]))]},
        }
        for name, found in sorted(by_name.items())
    ]
    words: list[Json] = [{"enum": sorted(by_name)}, *({"pattern": f"^(?:{spec.pattern})$"} for spec in patterns)]
    return {
        "type": "array",
        "minItems": 3,
        "maxItems": 3,
        "prefixItems": [
            {"type": "string", "description": "host, switch, switch:neighbour, flow or group"},
            {"type": "string", "anyOf": words},
            _some(_ANY),
        ],
        "allOf": rules,
    }


def _either(schemas: list[Json]) -> Json:
    """What any of them takes.  A number may always be written as text, as the loader takes both."""
    different = [s for i, s in enumerate(schemas) if s not in schemas[:i]]
    return {"anyOf": [found for s in different for found in (s, *_as_text(s))]}


def _as_text(one: Json) -> list[Json]:
    if one.get("type") == "integer":
        return [{"type": "string", "pattern": "^-?[0-9]+$"}]
    if "enum" in one:
        return [{"enum": [str(v) for v in one["enum"] if not isinstance(v, bool | str)]}] if _numbers(one) else []
    return []


def _numbers(one: Json) -> bool:
    return any(isinstance(v, int) and not isinstance(v, bool) for v in one["enum"])


def _condition(*, many: bool) -> Json:
    return {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": _KEY},
        "additionalProperties": _some(_ANY) if many else _ANY,
    }


def _expectation(metrics: Mapping[str, MetricInfo] | None) -> Json:
    number: Json = {"type": ["number", "string"]}
    fields: Json = {
        "name": {"type": ["string", "number"]},
        "metric": _metric(metrics),
        "flow": _some({"type": "string"}),
        "min": number,
        "max": number,
        "equals": _ANY,
        "tolerance": number,
        "at_least": {"type": "number"},
        "at_most": {"type": "number"},
        "than": _condition(many=False),
        "when": _condition(many=True),
        "quantifier": {"enum": ["every", "some"]},
        "paper": _paper(),
    }
    assert tuple(fields) == EXPECT_FIELDS
    needs = [{"required": [name]} for name in ("min", "max", "equals", "at_least", "at_most", "paper")]
    return {
        **_object(fields, ("metric",)),
        "anyOf": needs,
        "dependentRequired": {"at_least": ["than"], "at_most": ["than"], "tolerance": ["equals"]},
    }


def _figures(metrics: Mapping[str, MetricInfo] | None) -> Json:
    parameter: Json = {"type": "string", "pattern": _KEY}
    time: Json = {"type": "string", "description": "A time with its unit, such as 100ms"}
    fields: Json = {
        "title": {"type": ["string", "number"], "maxLength": MAX_TITLE},
        "kind": {
            "enum": list(KINDS),
            "description": "Of the first point: throughput, sequence, time_sequence; of all points: response, and "
            "metric (a line or bars over a swept parameter), box, cdf",
        },
        "bin": {**time, "description": "Width of the bins of throughput, such as 10ms"},
        "flow": {"type": "string", "description": "The first one when none is named; of a metric all flows together"},
        "when": _condition(many=True),
        "from": time,
        "to": time,
        "metric": {**_metric(metrics), "description": "What kinds metric, cdf and box show"},
        "x": {**parameter, "description": "The swept parameter along x, such as switch.delay"},
        "by": {**parameter, "description": f"A line for each value of this one, at most {MAX_BY}"},
        "facet": {**parameter, "description": f"A panel for each value of this one, at most {MAX_FACET}"},
    }
    assert tuple(fields) == FIGURE_FIELDS
    items = _object(fields) | {"allOf": _figure_rules()}
    return {"type": "array", "maxItems": MAX_FIGURES, "items": items, "description": "What the report draws"}


def _figure_rules() -> list[Json]:
    """Which fields a kind needs, and which it has no use for."""
    kinds = (*SWEEP_KINDS, "")
    return [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
            if kind
            else {"not": {"properties": {"kind": {"enum": list(SWEEP_KINDS)}}, "required": ["kind"]}},
            "then": {"required": list(needed_fields(kind)), "properties": dict.fromkeys(unused_fields(kind), False)},
        }
        for kind in kinds
    ]


def _metric(metrics: Mapping[str, MetricInfo] | None) -> Json:
    return {"enum": sorted(metrics)} if metrics is not None else {"type": "string"}


def _paper() -> Json:
    text: Json = {"type": "string", "minLength": 1}
    fields: Json = {
        "source": {**text, "description": "Who, what, which figure"},
        "published": {
            "type": ["number", "string"],
            "description": "In the metric's unit, or the ratio where there is a `than`; text: a property",
        },
        "within": {
            "type": "number",
            "minimum": 0,
            "description": "Relative difference that still counts as reproduced",
        },
        "why": {**text, "description": "Why ours differs"},
    }
    assert tuple(fields) == PAPER_FIELDS
    return _object(fields, ("source", "published"))
