# SPDX-License-Identifier: Apache-2.0
"""Clones of ingress (as parsed) and of egress (as egress left it), with the metadata of their field list; assert()."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from testctl_agent.p4c_ebpf.translate import translate_text
from testctl_agent.spec.errors import DriverError, ProgramError

from agents.tests.p4.documents import (
    Document,
    Json,
    Make,
    apply,
    assign,
    document,
    field,
    header,
    number,
    statement,
)

pytestmark = pytest.mark.root

REST = bytes(range(64))
TYPES = {"x_t": [(name, 8) for name in "abcr"], "y_t": [("v", 32)], "meta_t": [("kept", 8), ("lost", 8)]}
HEADERS = {"x": "x_t", "y": "y_t", "meta": "meta_t"}
INGRESS, EGRESS = "clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"


def cloning(ingress: Sequence[Json], egress: Sequence[Json]) -> Document:
    """Egress writes kept to x.a, lost to x.b, instance_type to x.c and egress_rid to x.r."""
    write = [
        assign(field("x", "a"), field("meta", "kept")), assign(field("x", "b"), field("meta", "lost")),
        assign(field("x", "c"), apply("&", field("standard_metadata", "instance_type"), number(255))),
        assign(field("x", "r"), apply("&", field("standard_metadata", "egress_rid"), number(255))),
    ]  # fmt: skip
    made = document(TYPES, HEADERS, ingress, [*egress, *write], metadata=["meta"])
    made["field_lists"] = [
        {"id": 3, "name": "none", "elements": []},
        {"id": 4, "name": "kept", "elements": [{"type": "field", "value": ["meta", "kept"]}]},
    ]
    return made


SET = [assign(field("meta", "kept"), number(77)), assign(field("meta", "lost"), number(66))]


@pytest.mark.parametrize(("fields", "kept"), [(3, 0), (4, 77)])
def test_ingress(made: Make, fields: int, kept: int) -> None:
    """The clone has the headers as parsed, though ingress changed and removed them; the packet goes on."""
    change = [assign(field("y", "v"), number(0x01020304)), statement("remove_header", header("y"))]
    one = made(cloning([*SET, statement(INGRESS, number(5), number(fields)), change[0], change[1]], []))
    packet = bytes([1, 2, 3, 4, 9, 9, 9, 9]) + REST
    assert one.inject(1, packet) == [(1, bytes([77, 66, 0, 0]) + REST)]  # no such session
    one.driver.mirror(5, [3, 2], [0, 8])
    clones = [(port, bytes([kept, 0, 1, rid, 9, 9, 9, 9]) + REST) for port, rid in ((3, 0), (2, 8))]
    assert one.inject(1, packet) == [*clones, (1, bytes([77, 66, 0, 0]) + REST)]
    one.driver.mirror(5, [])
    assert one.inject(1, packet) == [(1, bytes([77, 66, 0, 0]) + REST)]


@pytest.mark.parametrize(("fields", "kept"), [(3, 0), (4, 77)])
def test_egress(made: Make, fields: int, kept: int) -> None:
    """The clone has the headers that egress left, and an egress of its own; it is not cloned again."""
    change = assign(field("y", "v"), apply("&", apply("+", field("y", "v"), number(1)), number(2**32 - 1)))
    one = made(cloning(SET, [statement(EGRESS, number(5), number(fields)), change]))
    one.driver.mirror(5, [4])
    packet = bytes([1, 2, 3, 4, 0, 0, 0, 9]) + REST
    first, clone = bytes([77, 66, 0, 0, 0, 0, 0, 10]), bytes([kept, 0, 2, 0, 0, 0, 0, 11])
    assert one.inject(1, packet) == [(1, first + REST), (4, clone + REST)]


@pytest.mark.parametrize("dropped", [False, True])
def test_egress_of_each_copy(made: Make, dropped: bool) -> None:
    """And a copy that egress drops is cloned all the same."""
    group = assign(field("standard_metadata", "mcast_grp"), number(9))
    copied = apply("==", field("standard_metadata", "instance_type"), number(5))
    drop = assign(field("standard_metadata", "egress_spec"), apply("?", number(511), number(1), copied))
    clone = statement(EGRESS, number(5), number(4))
    one = made(cloning([*SET, group], [drop, clone] if dropped else [clone]))
    one.driver.mirror(5, [4])
    one.driver.multicast(9, [2, 3], [20, 30])
    head = bytes([0, 0, 0, 9]) + REST
    copies = [(port, bytes([77, 66, 5, rid]) + head) for port, rid in ((2, 20), (3, 30))]
    cloned = (4, bytes([77, 0, 2, 0]) + head)
    want = [cloned, cloned] if dropped else [copies[0], cloned, copies[1], cloned]
    assert one.inject(1, bytes([1, 2, 3, 4]) + head) == want


def test_both_kinds(made: Make) -> None:
    ingress = [*SET, statement(INGRESS, number(5), number(4))]
    one = made(cloning(ingress, [statement(EGRESS, number(6), number(3))]))
    one.driver.mirror(5, [4])
    one.driver.mirror(6, [7])
    packet = bytes([1, 2, 3, 4, 0, 0, 0, 9]) + REST
    tail = bytes([0, 0, 0, 9]) + REST
    assert one.inject(1, packet) == [
        (4, bytes([77, 0, 1, 0]) + tail), (1, bytes([77, 66, 0, 0]) + tail), (7, bytes([0, 0, 2, 0]) + tail),
    ]  # fmt: skip
    for session, said in ((-1, "want 0 to 32767; got -1"), (32768, "want 0 to 32767; got 32768")):
        with pytest.raises(DriverError, match=f"^clone session: {said}$"):
            one.driver.mirror(session, [1])
    with pytest.raises(DriverError, match=r"^clone session 5: want ports from 1 to 510; got 0$"):
        one.driver.mirror(5, [0])


def test_a_program_that_does_not_clone(made: Make) -> None:
    one = made(document(TYPES, {"x": "x_t"}))
    with pytest.raises(DriverError, match=r"^clone session 5: the program does not clone$"):
        one.driver.mirror(5, [1])


def test_field_lists_have_metadata() -> None:
    doc = cloning([statement(INGRESS, number(5), number(4))], [])
    doc["field_lists"][1]["elements"] = [{"type": "field", "value": ["x", "a"]}]
    with pytest.raises(ProgramError, match=r": can't be translated: a field list of anything but metadata$"):
        translate_text(json.dumps(doc), Path("x.json"))


def test_a_false_assertion_drops(made: Make) -> None:
    test = apply("<", field("x", "a"), number(5))
    doc = document(TYPES, {"x": "x_t"}, [statement("assert", test), assign(field("x", "r"), number(1))])
    one = made(doc)
    assert one.inject(1, bytes([4, 0, 0, 0]) + REST) == [(1, bytes([4, 0, 0, 1]) + REST)]
    assert one.inject(1, bytes([5, 0, 0, 0]) + REST) == []
    one = made(document(TYPES, {"x": "x_t"}, [], [statement("assume", test)]))
    assert [len(one.inject(1, bytes([at, 0, 0, 0]) + REST)) for at in (4, 5)] == [1, 0]
