# SPDX-License-Identifier: Apache-2.0
"""The fields of a plan, a table for each of its mappings: for the readers, the JSON Schema and the reference."""

from __future__ import annotations

from collections.abc import Iterable

from testctl_agent.spec.failures import FAILURES

from testctl.core.temporal import SIGNALS
from testctl.plan.fields import NAME, Field, Json, Table
from testctl.plan.request_figures import REQUEST_KINDS
from testctl.plan.sweep_figures import MAX_BY, MAX_DOWN, MAX_FACET, SWEEP_KINDS, TIME_KINDS

ANY: Json = {"type": ["string", "number", "boolean"]}
KEY: Json = {"type": "string", "pattern": r"^[a-z][a-z0-9_]*([:-][a-z0-9_]+)?\..+$"}
"""ENTITY.PARAM, of a port or a link too."""
KEY_OR_FLOW: Json = {"type": "string", "pattern": rf"{KEY['pattern']}|^flow$"}
MAX_SEED = 2**31 - 1
MAX_TITLE = 200
RATIOS = ("at_least", "at_most")
BOUNDS = ("min", "max", "equals", *RATIOS)
WITH_FAILS_WITH = ("name", "fails_with", "flow", "when")
_CONDITION = "ENTITY.PARAM of a tuple: the value it has, or a list of values"
_MEMBERS = "A host, switch, port (switch:receiver), flow or group above; or a list of them"


def closed(properties: Json, required: Iterable[str] = ()) -> Json:
    """An object without other properties."""
    schema: Json = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def schema_of(table: Table, **made: Json) -> Json:
    """The object that a table describes.  made: the schemas that it leaves out."""
    properties = {name: {**(field.schema or made[name]), "description": field.help} for name, field in table.items()}
    return closed(properties, [name for name, field in table.items() if field.needed])


def integer_of(least: int, most: int) -> Json:
    return {"type": "integer", "minimum": least, "maximum": most}


def one_or_more(item: Json) -> Json:
    """An item, or a list of at least one."""
    return {"anyOf": [item, {"type": "array", "minItems": 1, "items": item}]}


def _named(value: Json, help: str) -> Json:
    names = {"pattern": f"^{NAME.pattern}$", "maxLength": 31}
    return {"type": "object", "propertyNames": names, "additionalProperties": {**value, "description": help}}


def _condition(value: Json, keys: Json = KEY) -> Json:
    names = {"pattern": keys["pattern"]}
    return {"type": "object", "minProperties": 1, "propertyNames": names,
            "additionalProperties": {**value, "description": _CONDITION}}  # fmt: skip


_TEXT: Json = {"type": "string"}
_SCALAR: Json = {"type": ["string", "number"]}
_NUMBER: Json = {"type": ["number", "string"]}
_CONDITIONS = _condition(one_or_more(ANY))
_SIGNAL: Json = {"anyOf": [{"const": name, "description": signal.help} for name, signal in SIGNALS.items()]}
_WHILE: Json = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"enum": list(SIGNALS)},
    "additionalProperties": one_or_more(_SCALAR) | {"description": "The value it has, or a list of values"},
}
_FLOW: Json = {"type": "string", "pattern": "^[^>]+->[^>]+$"}

MAX_SAMPLE = 10_000
DESIGN: Table = {
    "cover": Field(
        "Every combination of the values of so many tuples is in some point: 2 for pairs, 3 for triples",
        integer_of(1, 6),
    ),
    "sample": Field("So many points, drawn evenly from the ranges and lists of values", integer_of(1, MAX_SAMPLE)),
    "seed": Field("Another seed chooses other points of the same coverage, or draws others", integer_of(0, MAX_SEED)),
}
ALLOW: Table = {
    "rule": Field("The name of the rule", _TEXT, needed=True),
    "reason": Field("Why it may be broken; the report shows it", _TEXT | {"minLength": 1}, needed=True),
    "when": Field("Only at points with these values, such as {hosts.cc: dctcp}; default: at all", _CONDITIONS),
}
PLAN: Table = {
    "about": Field("What the plan is for, in one line", _TEXT),
    "topology": Field(
        "Hosts, switches and links: one of lab/topologies, with its parameters as {dumbbell: {senders: 2}}, or "
        "a file of your own whose path begins at the plan: ./mine.yaml. `testctl topologies` lists them",
        needed=True,
    ),
    "flows": Field(
        "The traffic, NAME: HOST -> HOST. An end may be a pattern or a group (h* -> h1): a flow of each, NAME1, "
        "NAME2, …, and NAME is the group of them",
        _named(_FLOW, "HOST -> HOST") | {"minProperties": 1},
        needed=True,
    ),
    "groups": Field(
        "NAME: [MEMBER, …]: hosts, switches, ports or flows that tuples set together. There are already hosts, "
        "switches, flows and all",
        _named(one_or_more(_TEXT), _MEMBERS),
    ),
    "tuples": Field(
        "What is set: [entity, parameter, value], or [entity, parameter, [value, …]] to sweep, or a range of values "
        "{from: 1ms, to: 9ms, steps: 3}; a value may be a formula such as 0.5 bdp. Without `design` "
        "there is a point for every combination of values. A tuple of an entity wins over one of its group",
        needed=True,
    ),
    "design": Field(
        "Which combinations of values are points: full (all of them), {cover: 2}: few points that together "
        "have every pair of values, or {sample: 200}: points drawn from ranges",
        {"oneOf": [{"const": "full"}, *(schema_of(DESIGN) | {"required": [name]} for name in ("cover", "sample"))]},
    ),
    "zip": Field(
        "Swept tuples whose values belong together, the first of one to the first of the other: [[KEY, KEY], …]",
        {"type": "array", "items": {"type": "array", "minItems": 2, "items": KEY}},
    ),
    "repeat": Field("How often each point is run, each time with the next seed", integer_of(1, 10_000)),
    "seed": Field("The seed of the first repetition, from which all randomness comes", integer_of(0, MAX_SEED)),
    "exclude": Field(
        "Combinations of values that are no points: a point is left out that meets all keys of an entry",
        {"type": "array", "items": _CONDITIONS},
    ),
    "expect": Field("What has to hold. Without an expectation a point passes when it was measured"),
    "allow": Field(
        "Rules of TCP (`testctl rules`) that points may break: such violations make no point fail",
        {"type": "array", "items": schema_of(ALLOW)},
    ),
    "figures": Field("What the report draws beside the points' own figures"),
}
PAPER: Table = {
    "source": Field("Who, what, which figure", _TEXT | {"minLength": 1}, needed=True),
    "published": Field(
        "In the metric's unit, or the ratio where there is a `than`; text: a property", _NUMBER, needed=True
    ),
    "within": Field("Relative difference that still counts as reproduced", {"type": "number", "minimum": 0}),
    "why": Field("Why ours differs", _TEXT | {"minLength": 1}),
}
EXPECT: Table = {
    "name": Field("How the report calls it; default: the metric and a number", _SCALAR),
    "metric": Field("What is compared; `testctl metrics` lists them"),
    "fails_with": Field("In place of a metric: how the flow has to fail, such as ETIMEDOUT", {"enum": list(FAILURES)}),
    "eventually": Field("In place of a metric: a signal that has to be within the bounds once in the window", _SIGNAL),
    "always": Field("In place of a metric: a signal that has to be within them all through the window", _SIGNAL),
    "flow": Field("Of which flows, or groups of flows; default: of every one", one_or_more(_TEXT)),
    "min": Field(
        "The least that passes, in the metric's unit or with a unit of its own, such as 90mbit; of a signal also "
        "`K before`: so many times its value just before the event of `after`",
        _NUMBER,
    ),
    "max": Field("The most that passes, in the metric's unit or with a unit of its own, such as 10ms", _NUMBER),
    "equals": Field("What it has to be, within `tolerance`; a text for a metric that is one", ANY),
    "tolerance": Field("How far from `equals` it may be, in the metric's unit, or a share such as 5%", _NUMBER),
    "at_least": Field("At least so many times the metric of the point or flow that `than` names", {"type": "number"}),
    "at_most": Field("At most so many times the metric of the point or flow that `than` names", {"type": "number"}),
    "after": Field(
        "Of a signal: the window begins at each of these events, at the first one, or at a time: recovery, "
        "first loss, 2s; or later: first loss + 3 rtt. Default: at the begin of the connection",
        _TEXT,
    ),
    "within": Field("Of a signal: how long the window is: a time, N rtt, or N acks", _TEXT),
    "until": Field("Of a signal: the window ends at the next such event, or at a time", _TEXT),
    "before": Field("Of a signal: the window ends at this event, without `after`", _TEXT),
    "while": Field("Of a signal: only the time at which others have these values: {state: recovery}", _WHILE),
    "than": Field(
        "The point to compare with: the same one but for these values, such as {hosts.cc: reno}; {flow: NAME}: the "
        "flow to compare with, at this point or, beside values, at that one",
        _condition(ANY, KEY_OR_FLOW),
    ),
    "when": Field("Only for points with these values, such as {hosts.cc: [cubic, reno]}", _CONDITIONS),
    "quantifier": Field(
        "every: each of these points has to meet it (the default); some: one of them is enough",
        {"enum": ["every", "some"]},
    ),
    "paper": Field("What a paper published of this metric; the report compares it", schema_of(PAPER)),
}
FIGURE: Table = {
    "title": Field("Above the figure", _SCALAR | {"maxLength": MAX_TITLE}),
    "kind": Field(
        "Of the first point: throughput, connections (the throughput of each), cwnd, rtt, queue (of the "
        "switch), sequence, time_sequence; of all points: response, and metric (a line or bars over a swept "
        "parameter), box, cdf, heatmap",
        {"enum": [*TIME_KINDS, "response", *REQUEST_KINDS, *SWEEP_KINDS]},
    ),
    "bin": Field("Width of the bins of throughput, such as 10ms", _TEXT),
    "flow": Field("The first one when none is named; of a metric all flows together", _TEXT),
    "connection": Field("Of kinds sequence and time_sequence: which of the flow's, from 0", integer_of(0, 63)),
    "when": Field("The first point with these values; of kind response all of them", _CONDITIONS),
    "from": Field("Begin of the time that is shown, such as 100ms", _TEXT),
    "to": Field("End of the time that is shown, such as 200ms", _TEXT),
    "metric": Field("What kinds metric, cdf, box and heatmap show"),
    "x": Field("The swept parameter along x, such as switch.delay; or `flow`", KEY_OR_FLOW),
    "by": Field(
        f"A line for each value of this one, or with `flow` for each flow, at most {MAX_BY}; of kind heatmap a row, "
        f"at most {MAX_DOWN}",
        KEY_OR_FLOW,
    ),
    "facet": Field(f"A panel for each value of this one, or for each flow, at most {MAX_FACET}", KEY_OR_FLOW),
}
