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

from p4c_ebpf.document import Node

MAX_HEADERS = 64
"""Their validity is one 64-bit word."""

WIDEST = 128
"""Bits of a field that is read or written; wider ones are only extracted, copied and emitted with their header."""

MAX_MEMBERS = 1 << 16
"""Of an action profile."""

STANDARD = ("standard_metadata", "intrinsic_metadata", "queueing_metadata")
"""Headers of metadata whose fields are the switch's, of one name each."""

INGRESS_CLONE, EGRESS_CLONE = 1, 2
"""standard_metadata.instance_type of clones; a packet that was not copied has 0."""
RECIRCULATE, RESUBMIT = 4, 6
"""instance_type of a packet that comes again (runtime/again.h)."""


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
    def bound(self) -> int:
        """The power of two that bounds `extra` for the verifier."""
        return 1 << (self.extra - 1).bit_length() if self.extra else 0

    @property
    def stride(self) -> int:
        """Bytes that it takes of `head`."""
        return (self.bytes + self.bound + 7) // 8 * 8

    @property
    def length(self) -> str:
        """C of the bytes of its varbit."""
        return f"p->extra{self.bit}"

    @property
    def mask(self) -> str:
        return f"{1 << self.bit:#x}ULL"

    @property
    def validity(self) -> str:
        """C that is 1 if it is valid, else 0."""
        return "1ULL" if self.metadata else f"((p->valid >> {self.bit}) & 1)"


@dataclass(frozen=True)
class Stack:
    name: str
    headers: tuple[Header, ...]


@dataclass(frozen=True)
class Union:
    """members: its headers by the names that its type gives them; at most one of them is valid."""

    name: str
    members: Mapping[str, Header]

    @property
    def mask(self) -> str:
        return f"{sum(1 << one.bit for one in self.members.values()):#x}ULL"


@dataclass(frozen=True)
class Array:
    """A register, an indirect counter (of width 0) or a parser value set (of the bits of all its fields)."""

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
    unions: dict[str, Union] = field(default_factory=dict)
    union_stacks: dict[str, tuple[Union, ...]] = field(default_factory=dict)
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
    comes_again: set[int] = field(default_factory=set)
    """Of RESUBMIT and RECIRCULATE, what some action asks for."""
    truncates: bool = False
    draws: bool = False
    """Whether an action takes random numbers."""
    sums_payload: bool = False
    field_lists: dict[int, list[Field]] = field(default_factory=dict)
    """The metadata that a clone keeps, or a packet that comes again."""
    value_sets: dict[str, Array] = field(default_factory=dict)
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

    def siblings(self, header: Header) -> list[Header]:
        """The other members of its union: they are invalid when it is valid."""
        found = [one.members.values() for one in self.unions.values() if header in one.members.values()]
        return [other for members in found for other in members if other is not header]

    def union(self, node: Node) -> Union:
        if node.text() not in self.unions:
            node.fail(f"no header union {node.text()!r}")
        return self.unions[node.text()]

    def union_stack(self, node: Node) -> tuple[Union, ...]:
        name = node.text()
        if name not in self.union_stacks:
            node.fail(f"no stack of header unions {name!r}")
        return self.union_stacks[name]

    def member(self, union: Union, node: Node) -> Header:
        if node.text() not in union.members:
            node.fail(f"header union {union.name} has no member {node.text()!r}")
        return union.members[node.text()]

    def field(self, node: Node) -> Field:
        """A field reference: [header, field]."""
        owner, name = node.pair()
        header = self.header(owner)
        if name.text() == "$valid$":
            name.cannot(f"{header.name}.$valid$ as a field that is written or hashed")
        if name.text() not in header.fields:
            name.fail(f"header {header.name} has no field {name.text()!r}")
        found = header.fields[name.text()]
        if found.width > WIDEST and not found.variable:
            node.cannot(f"{header.name}.{found.name}, which has {found.width} bits; want at most {WIDEST}")
        return found

    def standard(self, name: str) -> Field | None:
        """A field of standard_metadata, if the program names it; P4-14 has some of them in other headers."""
        for header in (self.headers[owner] for owner in STANDARD if owner in self.headers):
            if header.metadata and name in header.fields and (header.name, name) in self.used:
                return header.fields[name]
        return None

    def needed(self, name: str) -> Field:
        """A field of standard_metadata that is used anyway."""
        found = self.standard(name)
        if found is None:
            self.root.fail(f"no metadata standard_metadata.{name}: want a program for v1model")
        return found

    def metadata(self) -> list[Field]:
        """What is kept of metadata: fields that are named."""
        return [
            one
            for header in self.headers.values()
            if header.metadata
            for one in header.fields.values()
            if (header.name, one.name) in self.used
        ]


def identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII)[:60]


def comment(text: str) -> str:
    """Text that can stand in a C comment."""
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")
