# SPDX-License-Identifier: Apache-2.0
"""What a P4 program declares: headers and where their bits lie, stacks, errors, actions, registers, counters.

Headers are kept as the bytes of the wire, each at a multiple of 8 in `head` of struct packet, so
that extracting and emitting one is a copy and a field that nobody asks for costs nothing.  Metadata
are members of their own, in the host's order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from testctl_agent.p4.document import Node

MOST_HEADERS = 64
"""Their validity is one 64-bit word."""

MOST_MEMBERS = 1 << 16
"""Of an action profile."""

INGRESS_CLONE, EGRESS_CLONE = 1, 2
"""standard_metadata.instance_type of clones; a packet that was not copied has 0."""

_CLONES = {"clone_ingress_pkt_to_egress": INGRESS_CLONE, "clone_egress_pkt_to_egress": EGRESS_CLONE}
_WIDEST_FIELD = 2048
_MOST_CELLS = 1 << 24


@dataclass(frozen=True)
class Field:
    """offset: bits from the header's first one (of metadata: unused)."""

    name: str
    width: int
    signed: bool
    offset: int
    header: str
    member: str
    """The C member of metadata."""
    variable: bool = False
    """A varbit of at most `width` bits, the header's last field."""


@dataclass(frozen=True)
class HeaderType:
    name: str
    fields: Mapping[str, Field]
    bits: int


@dataclass(frozen=True)
class Header:
    """bit: its place in the word of valid headers (-1: metadata); base: its place in `head`, bytes.

    extra  bytes that its varbit can have, behind `bytes` of its other fields; how many it has is `length`
    """

    name: str
    fields: Mapping[str, Field]
    metadata: bool
    bit: int
    base: int
    bytes: int
    node: Node
    extra: int = 0

    @property
    def words(self) -> range:
        """Where its 8-byte words begin, from `base`."""
        return range(0, (self.bytes + self.extra + 7) // 8 * 8, 8)

    @property
    def room(self) -> int:
        """The power of two that the verifier is told `extra` is at most."""
        return 1 << (self.extra - 1).bit_length() if self.extra else 0

    @property
    def length(self) -> str:
        """C of the bytes of its varbit."""
        return f"p->extra{self.bit}"

    @property
    def mask(self) -> str:
        return f"{1 << self.bit:#x}ULL"


@dataclass(frozen=True)
class Stack:
    name: str
    headers: tuple[Header, ...]


@dataclass(frozen=True)
class Array:
    """A register or an indirect counter; width is 0 of a counter."""

    name: str
    index: int
    size: int
    width: int


@dataclass(frozen=True)
class Meter:
    """size: 0 of a direct one, whose cells are those of its table's rows; packets: it counts them, not bytes.

    target  of a direct one: the field that its colour is written to
    """

    name: str
    index: int
    size: int
    packets: bool
    target: Node | None = None

    @property
    def map(self) -> str:
        return f"m{self.index}"


@dataclass(frozen=True)
class Profile:
    """An action profile, or a selector: then `selector` has its hash and the hash's input."""

    name: str
    index: int
    size: int
    selector: Node | None


@dataclass(frozen=True)
class Param:
    name: str
    width: int


@dataclass(frozen=True)
class Action:
    name: str
    index: int
    params: tuple[Param, ...]
    primitives: tuple[Node, ...]
    node: Node

    @property
    def label(self) -> str:
        return f"{identifier(self.name)}_{self.index}"


@dataclass
class Program:
    """A whole program; the parts with behaviour are left as nodes of the document."""

    root: Node
    headers: dict[str, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    actions: dict[int, Action] = field(default_factory=dict)
    registers: dict[str, Array] = field(default_factory=dict)
    counters: dict[str, Array] = field(default_factory=dict)
    direct: dict[str, str] = field(default_factory=dict)
    """Table → its direct counter."""
    meters: dict[str, Meter] = field(default_factory=dict)
    direct_meters: dict[str, Meter] = field(default_factory=dict)
    """Table → its direct meter."""
    profiles: dict[str, Profile] = field(default_factory=dict)
    clones: set[int] = field(default_factory=set)
    """The kinds of clone that some action makes."""
    field_lists: dict[int, list[Field]] = field(default_factory=dict)
    """The metadata that a clone keeps."""
    calculations: dict[str, Node] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    used: set[tuple[str, str]] = field(default_factory=set)
    """Fields that the program names anywhere: (header, field)."""
    head_bytes: int = 0
    resizes: bool = False
    """Headers may be added or removed: known once all actions and the parser are written."""

    def header(self, node: Node) -> Header:
        name = node.text()
        if name not in self.headers:
            node.fail(f"no header {name!r}")
        return self.headers[name]

    def stack(self, node: Node) -> Stack:
        name = node.text()
        if name not in self.stacks:
            node.cannot(f"{name!r} is not a stack of headers")
        return self.stacks[name]

    def field(self, node: Node) -> Field:
        """A field reference: [header, field]."""
        owner, name = node.pair()
        header = self.header(owner)
        if name.text() not in header.fields:
            name.fail(f"header {header.name} has no field {name.text()!r}")
        return header.fields[name.text()]

    def standard(self, name: str) -> Field | None:
        """A field of standard_metadata, if the program names it."""
        header = self.headers.get("standard_metadata")
        if header is None or (header.name, name) not in self.used:
            return None
        return header.fields.get(name)

    def metadata(self) -> list[Field]:
        """What is kept of metadata: fields that are named, and all that standard_metadata must have."""
        always = {("standard_metadata", "egress_spec"), ("standard_metadata", "mcast_grp")}
        return [
            one
            for header in self.headers.values()
            if header.metadata
            for one in header.fields.values()
            if (header.name, one.name) in self.used | always
        ]


def identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII)[:60]


def comment(text: str) -> str:
    """Text that can stand in a C comment."""
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")


def _header_types(root: Node) -> dict[str, tuple[Node, list[tuple[str, int, bool]]]]:
    found: dict[str, tuple[Node, list[tuple[str, int, bool]]]] = {}
    for one in root["header_types"]:
        fields: list[tuple[str, int, bool]] = []
        for entry in one["fields"]:
            parts = entry.items()
            if len(parts) not in (2, 3):
                entry.fail("want [name, width] or [name, width, signed]")
            if fields and fields[-1][1] <= 0:
                one.cannot(f"header type {one['name'].text()} has a field behind one of variable length")
            signed = len(parts) == 3 and bool(parts[2].value)
            if parts[1].value == "*":
                width = one["max_length"].number(1, 1 << 16) * 8 - sum(width for _, width, _ in fields)
                if width % 8 or not 0 < width <= _WIDEST_FIELD:
                    one.cannot(f"{one['name'].text()}.{parts[0].text()} has up to {width} bits")
                fields.append((parts[0].text(), -width, signed))
            else:
                fields.append((parts[0].text(), parts[1].number(1, _WIDEST_FIELD), signed))
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
            if width > 128 and not field_name.startswith("_padding"):
                declared.cannot(f"{kind}.{field_name} has {width} bits; want at most 128")
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
            program.head_bytes += (size + header.room + 7) // 8 * 8
        elif extra:
            one.cannot("metadata of variable length")
        program.headers[name] = header
        by_id[one["id"].number()] = header
    if bit > MOST_HEADERS:
        program.root["headers"].cannot(f"{bit} headers; want at most {MOST_HEADERS}")
    return by_id


def _array(node: Node, index: int, width: int) -> Array:
    return Array(node["name"].text(), index, node["size"].number(1, _MOST_CELLS), width)


def _meter(node: Node, index: int) -> Meter:
    name, direct = node["name"].text(), node["is_direct"].flag()
    kind = node["type"].text()
    if kind not in ("bytes", "packets"):
        node.cannot(f"a meter of {kind}")
    if node["rate_count"].number() != 2:
        node.cannot("a meter that has not two rates")
    size = 0 if direct else node["size"].number(1, _MOST_CELLS)
    return Meter(name, index, size, kind == "packets", node["result_target"] if direct else None)


def _mentions(value: object, found: set[tuple[str, str]]) -> None:
    """All pairs of text in the document that may be a field reference."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo.extend(one.values())
        elif isinstance(one, list):
            if len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], str):
                found.add((one[0], one[1]))
            todo.extend(one)


def _share_copies(program: Program) -> None:
    """A field of metadata that is copied as a whole is used on both sides if it is used on one."""
    pairs: list[tuple[str, str]] = []
    todo = [root.value for root in (program.root["actions"], program.root["parsers"])]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            given = one.get("parameters")
            if one.get("op") == "assign_header" and isinstance(given, list):
                names = [str(each.get("value")) for each in given if isinstance(each, dict)]
                known = [name for name in names if name in program.headers and program.headers[name].metadata]
                if len(known) == 2:
                    pairs.append((known[0], known[1]))
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
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
    for key in ("header_union_stacks", "header_unions"):
        for one in root.section(key):
            one.cannot(f"the header union {one['name'].text()}")
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
        if members[0].extra:
            one.cannot("a stack of headers of variable length")
        if any(later.bit != first.bit + at for at, (first, later) in enumerate((members[0], m) for m in members)):
            one.cannot("a stack whose headers are not declared one after the other")
        program.stacks[one["name"].text()] = Stack(one["name"].text(), tuple(members))
    for one in root.section("errors"):
        name, code = one.pair()
        program.errors[name.text()] = code.number()
    for at, one in enumerate(root["actions"]):
        params = tuple(Param(p["name"].text(), p["bitwidth"].number(1, 128)) for p in one["runtime_data"])
        program.actions[one["id"].number()] = Action(
            one["name"].text(), at, params, tuple(one["primitives"].items()), one
        )
    for action in program.actions.values():
        ops = {one["op"].text() for one in action.primitives}
        program.clones |= {kind for op, kind in _CLONES.items() if op in ops}
    for one in root.section("field_lists") if program.clones else []:
        kept = [program.field(each["value"]) for each in one["elements"] if each.kind() == "field"]
        if len(kept) != len(one["elements"].items()) or not all(program.headers[each.header].metadata for each in kept):
            one.cannot("a field list of anything but metadata")
        program.field_lists[one["id"].number()] = kept
    for at, one in enumerate(root.section("register_arrays")):
        width = one["bitwidth"].number(1, _WIDEST_FIELD)
        if width > 64:
            one.cannot(f"register {one['name'].text()} has {width} bits; want at most 64")
        program.registers[one["name"].text()] = _array(one, at, width)
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
            profile, size = one["name"].text(), one["max_size"].number(1, MOST_MEMBERS)
            chosen = one["selector"] if one.has("selector") else None
            program.profiles[profile] = Profile(profile, len(program.profiles), size, chosen)
    for one in root.section("calculations"):
        program.calculations[one["name"].text()] = one
    todo = [node.value for key, node in root.members().items() if key != "field_aliases"]
    _mentions(todo, program.used)
    _share_copies(program)
    return program
