# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a plan, for editors: made from the same specs that the loader uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testctl_agent.params.types import Changing, Largest
from testctl_agent.spec.failures import FAILURES
from testctl_agent.spec.largest import ICMP
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount

from testctl.plan import schema_words as words
from testctl.plan.expect import FIELDS as EXPECT_FIELDS
from testctl.plan.expect import PAPER_FIELDS
from testctl.plan.fields import NAME
from testctl.plan.figures import FIELDS as FIGURE_FIELDS
from testctl.plan.figures import KINDS, MAX_CONNECTION, MAX_FIGURES, MAX_TITLE
from testctl.plan.load import FIELDS, MAX_COVER, MAX_REPEAT, MAX_SEED, NEEDED
from testctl.plan.registry import MetricInfo, Registry, default_registry, installed_specs
from testctl.plan.request_figures import REQUEST_KINDS
from testctl.plan.sweep_figures import SWEEP_KINDS, needed_fields, unused_fields
from testctl.plan.topology import topology_dir, topology_names
from testctl.plan.topology_file import TopologyFile, read_topology

Json = dict[str, Any]
_ANY: Json = {"type": ["string", "number", "boolean"]}
_NAMED = f"^{NAME.pattern}$"
OWN_TOPOLOGY = r"^[^/].*/.*\.yaml$"
_KEY = r"^[a-z][a-z0-9_]*([:-][a-z0-9_]+)?\..+$"
"""ENTITY.PARAM, of a port or a link too."""


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
    if registry is None:
        specs = {kind: {**found, **installed_specs().get(kind, {})} for kind, found in specs.items()}
    fields: Json = {
        "about": {"type": "string"},
        "topology": _topology(topologies or topology_dir()),
        "flows": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": _NAMED, "maxLength": 31},
            "additionalProperties": {"type": "string", "pattern": "^[^>]+->[^>]+$", "description": words.FLOW},
        },
        "groups": {
            "type": "object",
            "propertyNames": {"pattern": _NAMED, "maxLength": 31},
            "additionalProperties": {**_some({"type": "string"}), "description": words.MEMBERS},
        },
        "tuples": {"type": "array", "minItems": 1, "items": _tuple(specs)},
        "design": {
            "oneOf": [
                {"const": "full"},
                _object(
                    _described({"cover": _integer(1, MAX_COVER), "seed": _integer(0, MAX_SEED)}, words.DESIGN),
                    ("cover",),
                ),
            ]
        },
        "repeat": _integer(1, MAX_REPEAT),
        "seed": _integer(0, MAX_SEED),
        "exclude": {"type": "array", "items": _condition(many=True)},
        "expect": {"type": "array", "items": _expectation(metrics)},
        "figures": _figures(metrics),
    }
    assert tuple(fields) == FIELDS
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:testctl:plan"}
    about = {"title": "A testctl plan", "description": "Which points are run, and what has to hold in them"}
    return {**head, **about, **_object(_described(fields, words.PLAN), NEEDED)}


def _described(fields: Json, texts: Mapping[str, str]) -> Json:
    """Each key with what an editor shows of it."""
    return {key: {**field, "description": texts[key]} for key, field in fields.items()}


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
    with_parameters = [_object({t.name: _parameters(t)}, (t.name,)) for t in found]
    own = {"type": "string", "pattern": OWN_TOPOLOGY, "description": words.OWN_TOPOLOGY}
    number = {"type": "integer", "description": words.NUMBER}
    numbers = {"type": "object", "additionalProperties": number, "description": words.OWN_TOPOLOGY}
    filled = {"type": "object", "minProperties": 1, "maxProperties": 1, "patternProperties": {OWN_TOPOLOGY: numbers}}
    filled["additionalProperties"] = False
    names = [{"const": t.name, "description": t.about} for t in found]
    return {"anyOf": [*names, own, *with_parameters, filled]}


def _parameters(topology: TopologyFile) -> Json:
    """Those of a topology."""
    fields = {
        p.name: {**_integer(p.least, p.most), "description": f"{p.least} to {p.most}; default {p.default}"}
        for p in topology.parameters
    }
    return {**_object(fields), "description": topology.about}


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
            "then": {"prefixItems": [True, True, _values(found)]},
        }
        for name, found in sorted(by_name.items())
    ]
    names: list[Json] = [{"const": name, "description": _helps(found)} for name, found in sorted(by_name.items())]
    names += [{"pattern": f"^(?:{spec.pattern})$", "description": spec.help} for spec in patterns]
    return {
        "type": "array",
        "minItems": 3,
        "maxItems": 3,
        "prefixItems": [
            {"type": "string", "description": words.ENTITY},
            {"type": "string", "anyOf": names, "description": "What is set; `testctl params` lists them"},
            {**_some(_ANY), "description": words.VALUE},
        ],
        "allOf": rules,
    }


def _helps(specs: Iterable[ParamSpec]) -> str:
    """What a parameter is, of each kind of entity that has it."""
    return "; ".join(f"{spec.kind}: {spec.help}" for spec in specs)


def _values(specs: Sequence[ParamSpec]) -> Json:
    """The values that a parameter takes, of whatever kind of entity."""
    wanted = "; or ".join(dict.fromkeys(spec.type.want for spec in specs))
    return {**_some(_either([_value(spec) for spec in specs])), "description": f"{wanted}; or a list to sweep"}


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
        "additionalProperties": {**(_some(_ANY) if many else _ANY), "description": words.CONDITION},
    }


def _expectation(metrics: Mapping[str, MetricInfo] | None) -> Json:
    number: Json = {"type": ["number", "string"]}
    fields: Json = {
        "name": {"type": ["string", "number"]},
        "metric": _metric(metrics),
        "fails_with": {"enum": list(FAILURES)},
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
    beside = {"name", "fails_with", "flow", "when"}
    failing = {"required": ["fails_with"], "properties": dict.fromkeys(fields.keys() - beside, False)}
    return {
        **_object(_described(fields, words.EXPECT)),
        "oneOf": [{"required": ["metric"], "anyOf": needs, "properties": {"fails_with": False}}, failing],
        "dependentRequired": {"at_least": ["than"], "at_most": ["than"], "tolerance": ["equals"]},
    }


def _figures(metrics: Mapping[str, MetricInfo] | None) -> Json:
    parameter: Json = {"type": "string", "pattern": _KEY}
    time: Json = {"type": "string"}
    fields: Json = {
        "title": {"type": ["string", "number"], "maxLength": MAX_TITLE},
        "kind": {"enum": list(KINDS)},
        "bin": time,
        "flow": {"type": "string"},
        "connection": _integer(0, MAX_CONNECTION),
        "when": _condition(many=True),
        "from": time,
        "to": time,
        "metric": _metric(metrics),
        "x": parameter,
        "by": parameter,
        "facet": parameter,
    }
    assert tuple(fields) == FIGURE_FIELDS
    items = _object(_described(fields, words.FIGURE)) | {"allOf": _figure_rules()}
    return {"type": "array", "maxItems": MAX_FIGURES, "items": items}


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


def _paper() -> Json:
    text: Json = {"type": "string", "minLength": 1}
    fields: Json = {
        "source": text,
        "published": {"type": ["number", "string"]},
        "within": {"type": "number", "minimum": 0},
        "why": text,
    }
    assert tuple(fields) == PAPER_FIELDS
    return _object(_described(fields, words.PAPER), ("source", "published"))
