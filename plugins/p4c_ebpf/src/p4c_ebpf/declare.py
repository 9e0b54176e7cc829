# SPDX-License-Identifier: Apache-2.0
"""What a document declares, checked, as the Program of model.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p4c_ebpf.document import Node
from p4c_ebpf.model import (
    EGRESS_CLONE,
    INGRESS_CLONE,
    MAX_HEADERS,
    MAX_MEMBERS,
    RECIRCULATE,
    RESUBMIT,
    WIDEST,
    Action,
    Array,
    Field,
    Header,
    Meter,
    Param,
    Profile,
    Program,
    Stack,
    Union,
    identifier,
)

_AGAIN = {"resubmit": RESUBMIT, "recirculate": RECIRCULATE}
_CLONES = {"clone_ingress_pkt_to_egress": INGRESS_CLONE, "clone_egress_pkt_to_egress": EGRESS_CLONE}
_MAX_CELLS = 1 << 24
_WIDEST_FIELD = 2048
_LONGEST_VARBIT = 4096
"""3680 of an IPv4 header's options: p4c before 2.19 writes the header's bits as its `max_length`, which is in bytes."""


def _header_types(root: Node) -> dict[str, tuple[Node, list[tuple[str, int, bool]]]]:
    found: dict[str, tuple[Node, list[tuple[str, int, bool]]]] = {}
    for one in root["header_types"]:
        fields: list[tuple[str, int, bool]] = []
        for entry in one["fields"]:
            parts = entry.items()
            if len(parts) not in (2, 3, 4):
                entry.fail("want [name, width, signed, saturating], the last two if they are so")
            if len(parts) == 4 and parts[3].value:
                entry.cannot(f"{one['name'].text()}.{parts[0].text()}, a saturating field")
            if fields and fields[-1][1] <= 0:
                one.cannot(f"header type {one['name'].text()} has a field behind one of variable length")
            signed = len(parts) > 2 and bool(parts[2].value)
            if parts[1].value == "*":
                if one.has("length_exp"):
                    one.cannot(f"{one['name'].text()}, whose length is that of an expression of P4-14")
                width = one["max_length"].number(1) * 8 - sum(width for _, width, _ in fields)
                if width % 8 or not 0 < width <= _LONGEST_VARBIT:
                    want = f"want a multiple of 8, at most {_LONGEST_VARBIT}"
                    one.cannot(f"{one['name'].text()}.{parts[0].text()} has up to {width} bits; {want}")
                fields.append((parts[0].text(), -width, signed))
            else:
                name = parts[0].text()
                fields.append((name, parts[1].size(_WIDEST_FIELD, f"bits of {one['name'].text()}.{name}"), signed))
        if len({name for name, _, _ in fields}) != len(fields):
            one.fail(f"header type {one['name'].text()} has two fields of one name")
        found[one["name"].text()] = (one, fields)
    return found


def _headers(program: Program) -> dict[int, Header]:
    types = _header_types(program.root)
    by_id: dict[int, Header] = {}
    unions = {one["name"].text() for one in program.root.section("header_union_types")}
    bit, members = 0, 0
    for one in program.root["headers"]:
        name, kind = one["name"].text(), one["header_type"].text()
        if kind in unions:
            one.cannot(f"{name}, a header union ({kind})")
        if kind not in types:
            one.fail(f"header {name}: no header type {kind!r}")
        metadata = one["metadata"].flag()
        declared, shape = types[kind]
        fields: dict[str, Field] = {}
        offset = extra = 0
        for field_name, width, signed in shape:
            if width < 0:
                fields[field_name] = Field(field_name, -width, False, offset, name, "", variable=True)
                extra = -width // 8
                continue
            if metadata and width > WIDEST and not field_name.startswith("_padding"):
                declared.cannot(f"{kind}.{field_name} has {width} bits; want at most {WIDEST}")
            fields[field_name] = Field(
                field_name, width, signed, offset, name, f"m{members}_{identifier(field_name.split('.')[-1])}"
            )
            offset += width
            members += 1
        if not metadata and offset % 8:
            declared.fail(f"header type {kind} has {offset} bits; want a multiple of 8")
        size = 0 if metadata else offset // 8
        if name in program.headers:
            one.fail(f"two headers are called {name!r}")
        header = Header(name, fields, metadata, -1 if metadata else bit, program.head_bytes, size, one, extra)
        if not metadata:
            bit += 1
            program.head_bytes += header.stride
        elif extra:
            one.cannot("metadata of variable length")
        program.headers[name] = header
        by_id[one["id"].number()] = header
    if bit > MAX_HEADERS:
        program.root["headers"].cannot(f"{bit} headers; want at most {MAX_HEADERS}")
    return by_id


def _unions(program: Program, by_id: dict[int, Header]) -> None:
    """Header unions and stacks of them."""
    types = {one["name"].text(): one for one in program.root.section("header_union_types")}
    numbered: dict[int, Union] = {}
    for one in program.root.section("header_unions"):
        name, kind = one["name"].text(), one["union_type"].text()
        if kind not in types:
            one.fail(f"header union {name}: no type {kind!r}")
        names = [member.pair()[0].text() for member in types[kind]["headers"]]
        headers = [by_id.get(number.number()) for number in one["header_ids"]]
        found = {name: header for name, header in zip(names, headers, strict=False) if header and not header.metadata}
        if len(found) != len(names) or len(found) != len(headers):
            one.fail(f"header union {name}: want {len(names)} headers")
        program.unions[name] = numbered[one["id"].number()] = Union(name, found)
    for one in program.root.section("header_union_stacks"):
        given = [numbered.get(number.number()) for number in one["header_union_ids"]]
        unions = tuple(union for union in given if union)
        if len(unions) != len(given) or one["name"].text() in program.stacks:
            one.fail(f"want a stack of {len(given)} header unions")
        program.union_stacks[one["name"].text()] = unions


def _array(node: Node, index: int, width: int) -> Array:
    return Array(node["name"].text(), index, node["size"].size(_MAX_CELLS, "cells"), width)


def _meter(node: Node, index: int) -> Meter:
    name, direct = node["name"].text(), node["is_direct"].flag()
    kind = node["type"].text()
    if kind not in ("bytes", "packets"):
        node.cannot(f"a meter of {kind}")
    if node["rate_count"].number() != 2:
        node.cannot("a meter that has not two rates")
    size = 0 if direct else node["size"].size(_MAX_CELLS, "cells")
    return Meter(name, index, size, kind == "packets", node["result_target"] if direct else None)


def _parts(value: object) -> Iterator[dict[str, Any] | list[Any]]:
    """All objects and arrays in a part of the document."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list):
            todo.extend(one.values() if isinstance(one, dict) else one)
            yield one


def _mentions(value: object) -> set[tuple[str, str]]:
    """All pairs of text in the document that may be a field reference."""
    arrays = [one for one in _parts(value) if isinstance(one, list) and len(one) == 2]
    return {(a, b) for a, b in arrays if isinstance(a, str) and isinstance(b, str)}


def _share_copies(program: Program) -> None:
    """A field of metadata that is copied as a whole is used on both sides if it is used on one."""
    pairs: list[tuple[str, str]] = []
    for one in _parts([program.root["actions"].value, program.root["parsers"].value]):
        given = one.get("parameters") if isinstance(one, dict) and one.get("op") == "assign_header" else None
        if isinstance(given, list):
            names = [str(each.get("value")) for each in given if isinstance(each, dict)]
            known = [name for name in names if name in program.headers and program.headers[name].metadata]
            if len(known) == 2:
                pairs.append((known[0], known[1]))
    before = -1
    while before != len(program.used):
        before = len(program.used)
        for a, b in pairs:
            for mine, other in ((a, b), (b, a)):
                program.used |= {(mine, name) for owner, name in program.used if owner == other}


def declare(root: Node) -> Program:
    """All declarations of a document, checked."""
    program = Program(root)
    by_id = _headers(program)
    _unions(program, by_id)
    for one in root.section("header_stacks"):
        members = []
        for number in one["header_ids"]:
            if number.number() not in by_id or by_id[number.number()].metadata:
                number.fail(f"no header has the id {number.number()}")
            members.append(by_id[number.number()])
        if not members or any(
            h.bytes != members[0].bytes or list(h.fields) != list(members[0].fields) for h in members
        ):
            one.fail("want a stack of headers of one type")
        if any(later.bit != first.bit + at for at, (first, later) in enumerate((members[0], m) for m in members)):
            one.cannot("a stack whose headers are not declared one after the other")
        program.stacks[one["name"].text()] = Stack(one["name"].text(), tuple(members))
    for one in root.section("errors"):
        name, code = one.pair()
        program.errors[name.text()] = code.number()
    for at, one in enumerate(root["actions"]):
        params = tuple(
            Param(p["name"].text(), p["bitwidth"].size(WIDEST, f"bits of the parameter {p['name'].text()}"))
            for p in one["runtime_data"]
        )
        program.actions[one["id"].number()] = Action(
            one["name"].text(), at, params, tuple(one["primitives"].items()), one
        )
    for action in program.actions.values():
        ops = {one["op"].text() for one in action.primitives}
        program.clones |= {kind for op, kind in _CLONES.items() if op in ops}
        program.comes_again |= {kind for op, kind in _AGAIN.items() if op in ops}
        program.truncates |= "truncate" in ops
        program.draws |= "modify_field_rng_uniform" in ops
    for one in root.section("field_lists") if program.clones or program.comes_again else []:
        kept = [program.field(each["value"]) for each in one["elements"] if each.kind() == "field"]
        if len(kept) != len(one["elements"].items()) or not all(program.headers[each.header].metadata for each in kept):
            one.cannot("a field list of anything but metadata")
        program.field_lists[one["id"].number()] = kept
    for at, one in enumerate(root.section("register_arrays")):
        register = one["name"].text()
        program.registers[register] = _array(one, at, one["bitwidth"].size(64, f"bits of the register {register}"))
    for at, one in enumerate(root.section("counter_arrays")):
        if one["is_direct"].flag():
            program.direct[one["binding"].text()] = one["name"].text()
        else:
            program.counters[one["name"].text()] = _array(one, at, 0)
    for at, one in enumerate(root.section("meter_arrays")):
        meter = _meter(one, at)
        if meter.target is None:
            program.meters[meter.name] = meter
        else:
            program.direct_meters[one["binding"].text()] = meter
    for pipeline in root["pipelines"]:
        for one in pipeline.section("action_profiles"):
            profile, size = one["name"].text(), one["max_size"].size(MAX_MEMBERS, "members")
            chosen = one["selector"] if one.has("selector") else None
            program.profiles[profile] = Profile(profile, len(program.profiles), size, chosen)
    for at, one in enumerate(root.section("parse_vsets")):
        values = one["name"].text()
        size = one["max_size"].size(_MAX_CELLS, f"members of the value set {values}")
        width = one["compressed_bitwidth"].size(WIDEST, f"bits of the value set {values}")
        program.value_sets[values] = Array(values, at, size, width)
    for one in root.section("calculations"):
        program.calculations[one["name"].text()] = one
        program.sums_payload |= any(covered.kind() == "payload" for covered in one.section("input"))
    program.used |= _mentions([node.value for key, node in root.members().items() if key != "field_aliases"])
    _share_copies(program)
    return program
