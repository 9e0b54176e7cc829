# SPDX-License-Identifier: Apache-2.0
"""Documents as older compilers write them, made of those that p4c writes today, and what both are translated to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from p4c_ebpf.defaults import CORE_ERRORS, VALUE_SET_SIZE
from p4c_ebpf.document import ProgramError
from p4c_ebpf.translate import Translation, translate_text
from testctl_agent.switch.drivers.driver import Entry, Exact

from plugins.p4c_ebpf.tests.documents import Document, Make, assign, document, field, number
from plugins.p4c_ebpf.tests.packets import ethernet
from plugins.p4c_ebpf.tests.program_files import NAMES, committed

REST = bytes(range(64))


def translated(one: Document) -> Translation:
    return translate_text(json.dumps(one), Path("x.json"))


def everywhere(value: object) -> Iterator[dict[str, Any]]:
    """All objects of a document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from everywhere(inner)


def of_2018(one: Document) -> None:
    """Transitions have no type, value sets no size, the errors of core.p4 are not listed."""
    for state in one["parsers"][0]["parse_states"]:
        for case in state["transitions"]:
            kind = case["type"]
            case.pop("type") if kind in ("hexstr", "default") else None
            case["value"] = "default" if kind == "default" else case["value"]
    for values in one["parse_vsets"]:
        values.pop("max_size")
    if all(name in CORE_ERRORS for name, _ in one["errors"]):
        one.pop("errors")


def of_nothing_that_need_not_be(one: Document) -> None:
    """Without a version, empty arrays, and what is false or null; `update` and `verify` of a checksum are true then."""
    one.pop("__meta__")
    needed = {"update", "verify", "true_next"}
    for each in everywhere(one):
        for name in [name for name, value in each.items() if value == [] or value is None or value is False]:
            if name not in needed:
                each.pop(name)


def of_p4c_bm(one: Document) -> None:
    """Tables name their actions and profiles, and have their selectors."""
    names = {each["id"]: each["name"] for each in one["actions"]}
    for pipeline in one["pipelines"]:
        profiles = {each["name"]: each for each in pipeline.pop("action_profiles")}
        for table in pipeline["tables"]:
            table["actions"] = [names[number] for number in table.pop("action_ids")]
            if "action_profile" in table:
                table["act_prof_name"] = table.pop("action_profile")
                table |= {"selector": profiles[table["act_prof_name"]].get("selector")}
    for each in everywhere(one["actions"]):
        each |= {"op": "modify_field"} if each.get("op") == "assign" else {}


@pytest.mark.parametrize("older", [of_2018, of_nothing_that_need_not_be], ids=lambda older: older.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_program(name: str, older: Callable[[Document], None]) -> None:
    one = committed(name)
    if older is of_2018:
        for values in one["parse_vsets"]:
            values["max_size"] = VALUE_SET_SIZE
    want = translated(one)
    older(one)
    assert translated(one) == want


@pytest.mark.parametrize("name", ["l2", "router", "counters", "meters"])
def test_names_in_place_of_numbers(name: str) -> None:
    """p4c gives an action a number for each table; a name means the first."""
    one = committed(name)
    first = {each["name"]: each["id"] for each in reversed(one["actions"])}
    names = {each["id"]: each["name"] for each in one["actions"]}
    for pipeline in one["pipelines"]:
        for table in pipeline["tables"]:
            table["action_ids"] = [first[names[number]] for number in table["action_ids"]]
            table["default_entry"]["action_id"] = first[names[table["default_entry"]["action_id"]]]
    want = translated(one)
    of_p4c_bm(one)
    assert translated(one) == want


def test_a_selector_of_a_table() -> None:
    """Its profile has the size of the table."""
    one = committed("selector")
    of_p4c_bm(one)
    assert [each.selector for each in translated(one).layout.profiles].count(True) >= 1


@pytest.mark.root
@pytest.mark.parametrize("hit", [False, True], ids=["by action", "by hit"])
@pytest.mark.parametrize("keys", [["a"], []], ids=["keys", "no keys"])
def test_a_table_without_a_default_action(made: Make, keys: list[str], hit: bool) -> None:
    """A packet that it misses goes on without any, until one is set; "" takes it away again."""
    one = document({"x_t": [("a", 8), ("b", 8), ("c", 8)]}, {"x": "x_t"})
    value = {"type": "runtime_data", "value": 0}
    one["actions"][:0] = [
        {"name": "put", "id": 2, "runtime_data": [{"name": "value", "bitwidth": 8}],
         "primitives": [assign(field("x", "b"), value)]},
        {"name": "hit", "id": 3, "primitives": [assign(field("x", "c"), number(1))]},
    ]  # fmt: skip
    pipeline = one["pipelines"][0]
    pipeline["init_table"] = "table"
    pipeline["tables"] = [{
        "name": "table", "id": 0, "type": "simple", "match_type": "exact", "actions": ["put"], "max_size": 4,
        "key": [{"match_type": "exact", "target": ["x", name]} for name in keys],
        "next_tables": {"__HIT__": "was_hit", "__MISS__": "all"} if hit else {"put": "all"}, "base_default_next": "all",
    }]  # fmt: skip
    pipeline["action_calls"].append({"name": "was_hit", "id": 1, "action_id": 3, "next_node": "all"})
    target = made(one)

    def out(first: int) -> bytes:
        ((_, sent),) = target.inject(1, bytes([first, 2, 0]) + REST)
        return sent[1:3]

    assert out(1) == bytes([2, 0])
    target.driver.set_default("table", "put", {"value": 5})
    assert out(1) == bytes([5, 0])
    if keys:
        target.driver.insert(Entry("table", {"x.a": Exact(3)}, "put", {"value": 6}))
        assert [out(3), out(1)] == [bytes([6, hit]), bytes([5, 0])]
    target.driver.set_default("table", "", {})
    assert out(1) == bytes([2, 0])
    if keys:
        assert out(3) == bytes([6, hit])


@pytest.mark.root
def test_a_key_that_is_the_validity_of_a_header(made: Make) -> None:
    """Its target is the header's name, and so is its own where it has none."""
    one = document({"x_t": [("a", 8), ("b", 8)]}, {"x": "x_t", "y": "x_t"}, extracted=["x"])
    one["actions"].append({"name": "nine", "id": 2, "primitives": [assign(field("x", "b"), number(9))]})
    pipeline = one["pipelines"][0]
    pipeline["init_table"] = "table"
    pipeline["tables"] = [{
        "name": "table", "id": 0, "type": "simple", "match_type": "exact", "actions": ["nine"], "max_size": 4,
        "key": [{"match_type": "valid", "target": "x", "name": "hdr.x"}, {"match_type": "valid", "target": "y"}],
        "next_tables": {"nine": "all"}, "base_default_next": "all",
    }]  # fmt: skip
    target = made(one)
    target.driver.insert(Entry("table", {"hdr.x": Exact(1), "y": Exact(1)}, "nine"))
    assert target.inject(1, bytes([1, 2]) + REST) == [(1, bytes([1, 2]) + REST)]
    target.driver.insert(Entry("table", {"hdr.x": Exact(1), "y": Exact(0)}, "nine"))
    assert target.inject(1, bytes([1, 2]) + REST) == [(1, bytes([1, 9]) + REST)]


@pytest.mark.root
@pytest.mark.parametrize("owner", ["intrinsic_metadata", ""])
def test_the_group_of_p4_14(made: Make, owner: str) -> None:
    """mcast_grp in a header of its own, or nowhere."""
    one = committed("multicast")
    (kind,) = [each for each in one["header_types"] if each["name"] == "standard_metadata"]
    kind["fields"] = [each for each in kind["fields"] if each[0] != "mcast_grp"]
    one["header_types"].append({"name": "intrinsic_metadata_t", "id": 99, "fields": [["mcast_grp", 16]]})
    if owner:
        one["headers"].append({"name": owner, "id": 99, "header_type": "intrinsic_metadata_t", "metadata": True})
    for each in everywhere(one["actions"]):
        if each.get("value") == ["standard_metadata", "mcast_grp"]:
            each["value"] = [owner or "standard_metadata", "mcast_grp" if owner else "egress_spec"]
    target = made(one)
    target.driver.multicast(4, [2, 3])
    assert [port for port, _ in target.inject(1, ethernet(4) + REST)] == ([2, 3] if owner else [4])


@pytest.mark.root
def test_lengths_in_bits(made: Make) -> None:
    """p4c before 2.19 writes `max_length` in bits, which BMv2 takes for bytes."""
    one = committed("options")
    for kind in one["header_types"]:
        kind["max_length"] = 8 * kind["max_length"] if kind.get("max_length") else None
    sent = ethernet(0x88B5) + bytes(2) + (320).to_bytes(2, "big") + bytes(range(1, 41)) + REST
    assert made(one).inject(1, sent) == [(1, sent)]


def test_negative_constants_of_tables_are_of_twos_complement() -> None:
    """As p4c writes those of int<N>."""

    def of(data: str, key: str) -> Translation:
        one = committed("acl")
        (table,) = [each for pipeline in one["pipelines"] for each in pipeline["tables"] if each.get("entries")]
        table["default_entry"]["action_data"] = [data]
        table["entries"][0]["match_key"][0]["key"] = key
        return translated(one)

    (width,) = {each["runtime_data"][0]["bitwidth"] for each in committed("acl")["actions"] if each["id"] == 2}
    assert of("-0x01", "-0x02") == of(hex((1 << width) - 1), "0xfffe")
    with pytest.raises(ProgramError, match="parameters don't fit"):
        of(f"-{hex((1 << width - 1) + 1)}", "0x0050")
