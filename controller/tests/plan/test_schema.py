# SPDX-License-Identifier: Apache-2.0
"""The schema takes what the loader takes, and flags wrong fields."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from testctl.metrics import metric_names
from testctl.plan import load_plan, schema, topology_dir

ROOT = topology_dir().parents[1]
PLANS = sorted(
    file for file in (ROOT / "plans").rglob("*.yaml") if "corpus" not in file.parts and file.stem != "releases"
)
PLAN: dict[str, Any] = {
    "about": "x",
    "topology": {"dumbbell": {"senders": 2}},
    "flows": {"bulk": "sender1 -> receiver"},
    "groups": {"g": ["sender1", "receiver"]},
    "tuples": [
        ["g", "cc", ["cubic", "reno"]],
        ["g", "tcp_ecn", 1],
        ["left:right", "rate", "1gbit"],
        ["g", "tso", True],
    ],
    "design": {"cover": 2, "seed": 1},
    "repeat": 2,
    "seed": 1,
    "exclude": [{"g.cc": ["cubic"], "left:right.rate": "1gbit"}],
    "expect": [
        {"metric": "throughput_bps", "min": "1gbit", "when": {"g.cc": "reno"}, "quantifier": "some"},
        {"metric": "jain", "than": {"g.cc": "reno"}, "paper": {"source": "s", "published": 2, "within": 0.1}},
        {"metric": "throughput_bps", "max": "1gbit", "when": {"left-right.rate": "1gbit", "left:right.rate": "1gbit"}},
    ],
    "figures": [
        {"title": "a"},
        {"kind": "metric", "metric": "jain", "x": "g.cc", "by": "left:right.rate", "facet": "g.tso"},
        {"kind": "cdf", "metric": "jain", "by": "g.cc", "title": "b", "when": {"g.cc": "reno"}, "flow": "bulk"},
        {"kind": "box", "metric": "throughput_bps", "x": "g.cc"},
        {"kind": "heatmap", "metric": "goodput_bps", "x": "g.cc", "by": "g.tso", "flow": "bulk"},
    ],
}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    found = schema(metrics=metric_names())
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


@pytest.mark.parametrize(
    "topology", ["./mine.yaml", "./mine.json", "../labs/mine.yaml", "labs/mine.yaml", {"./mine.yaml": {"n": 2}}]
)
def test_takes_a_topology_by_its_path(validator: Draft202012Validator, topology: object) -> None:
    assert list(validator.iter_errors(PLAN | {"topology": topology})) == []


def test_takes_ranges_formulas_and_samples(validator: Draft202012Validator) -> None:
    values = [
        ["left:right", "rate", {"from": "1mbit", "to": "1gbit", "scale": "log"}],
        ["left:right", "delay", {"from": "1ms", "to": "9ms", "steps": 3}],
        ["left:right", "buffer", ["0.5 bdp", "bdp + 2 mtu", "64kB"]],
        ["g", "initcwnd", "bdp / mtu"],
        ["g", "tcp_reordering", "g.initcwnd / 2"],
    ]
    more = {
        "tuples": [*PLAN["tuples"], *values],
        "zip": [["g.cc", "left:right.delay"]],
        "design": {"sample": 8, "seed": 2},
    }
    assert list(validator.iter_errors(PLAN | more)) == []


@pytest.mark.parametrize(
    "value",
    [{"from": "1ms"}, {"from": "1ms", "to": "2ms", "step": 2}, ["1ms", {"from": "1ms", "to": "2ms"}], "1 parsec"],
)
def test_flags_other_values(validator: Draft202012Validator, value: object) -> None:
    assert list(validator.iter_errors(PLAN | {"tuples": [["left:right", "delay", value]]}))


@pytest.mark.parametrize("design", [{"seed": 1}, {"cover": 2, "sample": 2}, {"sample": 0}])
def test_flags_other_designs(validator: Draft202012Validator, design: object) -> None:
    assert list(validator.iter_errors(PLAN | {"design": design}))


def test_takes_a_good_plan(validator: Draft202012Validator) -> None:
    assert list(validator.iter_errors(PLAN)) == []


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.stem)
def test_takes_every_plan_of_the_project(validator: Draft202012Validator, path: Path) -> None:
    assert load_plan(path, metrics=metric_names()).points
    assert list(validator.iter_errors(yaml.safe_load(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("repaet",), 2),
        (("repeat",), 0),
        (("topology",), "pear"),
        (("topology",), {"dumbbell": {"sender": 2}}),
        (("topology",), {"pair": {"n": 2}}),
        (("topology",), "/etc/mine.yaml"),
        (("topology",), "./mine.txt"),
        (("topology",), {"./mine.yaml": {"n": "x"}}),
        (("flows",), {}),
        (("flows", "bulk"), "sender1"),
        (("flows", "Bulk"), "sender1 -> receiver"),
        (("tuples",), []),
        (("tuples", 0), ["g", "cc"]),
        (("tuples", 0, 1), "gcc"),
        (("tuples", 0, 2), []),
        (("tuples", 0, 2), {"a": 1}),
        (("tuples", 3, 2), "maybe"),
        (("design",), "all"),
        (("design",), {"seed": 1}),
        (("exclude", 0), {}),
        (("exclude", 0), {"g": "x"}),
        (("expect", 0, "metric"), "speed"),
        (("figures",), [{"title": "a", "kind": "thruput"}]),
        (("figures",), [{"kind": "throughput"}]),
        (("figures",), [{"title": "a", "bogus": 2}]),
        (("figures",), [{"title": "a", "metric": "jain"}]),
        (("figures",), [{"title": "a", "x": "g.cc"}]),
        (("figures",), [{"kind": "metric", "metric": "jain"}]),
        (("figures",), [{"kind": "metric", "x": "g.cc"}]),
        (("figures",), [{"kind": "metric", "metric": "speed", "x": "g.cc"}]),
        (("figures",), [{"kind": "metric", "metric": "jain", "x": "cc"}]),
        (("figures",), [{"kind": "metric", "metric": "jain", "x": "g.cc", "bin": "1ms"}]),
        (("figures",), [{"kind": "cdf", "metric": "jain", "x": "g.cc"}]),
        (("figures",), [{"kind": "box", "metric": "jain"}]),
        (("figures",), [{"kind": "heatmap", "metric": "jain", "x": "g.cc"}]),
        (("figures",), [{"kind": "heatmap", "metric": "jain", "x": "g.cc", "by": "g.tso", "bin": "1ms"}]),
        (("figures",), [{"title": "a", "when": {"cc": 1}}]),
        (("expect", 0, "mx"), 1),
        (("expect", 0), {"metric": "throughput_bps"}),
        (("expect", 0), {"metric": "throughput_bps", "at_least": 5}),
        (("expect", 0, "quantifier"), "most"),
        (("expect", 1, "paper"), {"source": "s"}),
        (("expect", 1, "paper"), {"published": 2}),
        (("expect", 1, "paper", "within"), -1),
        (("expect", 1, "paper", "published"), [2]),
        (("expect", 1, "paper", "wy"), "x"),
    ],
)  # fmt: skip
def test_flags(validator: Draft202012Validator, where: tuple[str | int, ...], value: object) -> None:
    plan = copy.deepcopy(PLAN)
    inner: Any = plan
    for step in where[:-1]:
        inner = inner[step]
    inner[where[-1]] = value
    assert list(validator.iter_errors(plan))


def test_needs_its_fields(validator: Draft202012Validator) -> None:
    for name in ("topology", "flows", "tuples"):
        assert list(validator.iter_errors({k: v for k, v in PLAN.items() if k != name}))


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.stem)
def test_every_plan_says_where_its_schema_is(path: Path) -> None:
    """For editors with a YAML language server; the path begins at the plan."""
    prefix = "# yaml-language-server: $schema="
    (line,) = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(prefix)]
    assert (path.parent / line.removeprefix(prefix)).resolve() == ROOT / "docs" / "reference" / "plan.schema.json"


def keys_of(node: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that a plan may have, every word for one, and every value of a tuple."""
    if isinstance(node, list):
        for number, item in enumerate(node):
            yield from keys_of(item, f"{where}[{number}]")
    if not isinstance(node, dict):
        return
    for name, field in (node.get("properties") or {}).items():
        if field is not False:
            yield f"{where}.{name}", field
    if isinstance(node.get("additionalProperties"), dict):
        yield f"{where}.*", node["additionalProperties"]
    if "const" in node and node["const"] != "full":
        yield f"{where}={node['const']}", node
    if "prefixItems" in node.get("then", ()):
        yield f"{where}, value of {node['if']['prefixItems'][1]['const']}", node["then"]["prefixItems"][2]
    for name, inner in node.items():
        if name not in ("if", "enum", "const", "required"):
            yield from keys_of(inner, f"{where}.{name}" if name != "properties" else where)


def test_every_key_and_parameter_is_described() -> None:
    found = list(keys_of(schema(metrics=metric_names())))
    names = {where.rpartition("=")[2] for where, _ in found}
    assert {"mtu", "cc", "jain", "saturation", "dumbbell", "pair"} <= names
    assert len(found) > 200
    lacking = [where for where, field in found if not field.get("description") and not where.endswith("=none")]
    assert lacking == []


@pytest.mark.parametrize(
    ("value", "good"),
    [("1gbit", True), ("1.5Gbit/s", True), (" 2 mbit", True), ("none", True), (10, True), (["1gbit", "2gbit"], True),
     ("1GBit", False), ("fast", False), ("1gbit!", False), ("10ms", False)],
)  # fmt: skip
def test_units_are_checked(validator: Draft202012Validator, value: object, good: bool) -> None:
    plan = PLAN | {"tuples": [["left:right", "buffer", "10kB"], ["left:right", "rate", value]]}
    assert (not list(validator.iter_errors(plan))) is good
