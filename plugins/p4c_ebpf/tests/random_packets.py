# SPDX-License-Identifier: Apache-2.0
"""Random packets for any program: down its parser as the BMv2 JSON has it, or real TCP/IP; then bent a little.

The first kind follows random transitions and writes the values they want, so that every state is
reached; the second kind has right lengths and checksums.  Values are those that rows have.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from plugins.p4c_ebpf.tests.packets import checksum
from plugins.p4c_ebpf.tests.random_rows import Values

MIN, MAX_PAYLOAD = 14, 96
_MAX_STATES = 16

Bits = tuple[int, int]
"""A value and its width."""


class Maker:
    """Packets of one program."""

    def __init__(self, program: dict[str, Any], values: Values) -> None:
        self._values = values
        self._random: Random = values.random
        kinds = {
            one["name"]: [(name, bits) for name, bits, *_ in one["fields"] if bits != "*"]
            for one in program["header_types"]
        }
        self._headers = {one["name"]: kinds[one["header_type"]] for one in program["headers"]}
        self._stacks = {one["name"]: kinds[one["header_type"]] for one in program.get("header_stacks", ())}
        (parser,) = program["parsers"]
        self._states = {one["name"]: one for one in parser["parse_states"]}
        self._first = parser["init_state"]
        self._items = {
            (stack["name"], member): kinds[kind]
            for stack in program.get("header_union_stacks", ())
            for union in program["header_union_types"]
            if union["name"] == stack["union_type"]
            for member, kind in union["headers"]
        }

    def packet(self) -> bytes:
        """One packet of at least 14 bytes."""
        made = bytearray(self._parsed() if self._random.random() < 0.5 else self._real())
        pick = self._random.random()
        if pick < 0.1:
            del made[self._random.randrange(len(made) + 1) :]
        elif pick < 0.25:
            for _ in range(self._random.randint(1, 3)):
                at = self._random.randrange(len(made) * 8)
                made[at // 8] ^= 1 << (at % 8)
        return bytes(made).ljust(MIN, b"\0")

    def _payload(self) -> bytes:
        return self._random.randbytes(self._random.choice((0, 0, 1, 6, self._random.randint(0, MAX_PAYLOAD))))

    def _parsed(self) -> bytes:
        """Headers along a random way through the parser, and a payload."""
        out: list[dict[str, Bits]] = []
        last: dict[str, dict[str, Bits]] = {}
        ahead: list[tuple[int, Bits]] = []
        state: str | None = self._first
        for _ in range(_MAX_STATES):
            if state is None:
                break
            one = self._states[state]
            for header in self._extracted(one):
                made = {name: (self._values.some(bits), bits) for name, bits in header[1]}
                _overlay(made, ahead)
                ahead = []
                last[header[0]] = made
                out.append(made)
            state = self._go(one, last, ahead)
        data = _pack([bits for header in out for bits in header.values()])
        for offset, (value, bits) in ahead:
            data = data.ljust(len(data) + (offset + bits + 7) // 8, b"\0") if not offset else data
            if not offset and bits % 8 == 0:
                data = data[: len(data) - bits // 8] + value.to_bytes(bits // 8, "big")
        return data + self._payload()

    def _extracted(self, state: dict[str, Any]) -> list[tuple[str, list[tuple[str, int]]]]:
        found = []
        for op in state["parser_ops"]:
            if op["op"] in ("extract", "extract_VL"):  # of one with a varbit, its other fields
                what = op["parameters"][0]
                name = what["value"]
                if what["type"] == "union_stack":
                    found.append((".".join(name), self._items[name[0], name[1]]))
                    continue
                found.append((name, self._stacks[name] if what["type"] == "stack" else self._headers[name]))
        return found

    def _go(self, state: dict[str, Any], last: dict[str, dict[str, Bits]], ahead: list[tuple[int, Bits]]) -> str | None:
        """Pick a transition, make the packet such that it is taken, and return where it goes."""
        chosen = self._random.choice(state["transitions"])
        following: str | None = chosen["next_state"]
        if chosen["type"] != "hexstr":
            return following
        value, mask = int(chosen["value"], 16), chosen["mask"]
        wanted = int(mask, 16) if mask else -1
        for part in reversed(state["transition_key"]):
            name, bits = self._key(part)
            octets = (bits + 7) // 8 * 8
            piece, kept = value & ((1 << octets) - 1), wanted & ((1 << bits) - 1)
            value, wanted = value >> octets, wanted >> octets
            if part["type"] == "lookahead":
                ahead.append((part["value"][0], (piece, bits)))
            elif part["type"] in ("field", "stack_field") and name in last and part["value"][1] in last[name]:
                old, _ = last[name][part["value"][1]]
                last[name][part["value"][1]] = ((piece & kept) | (old & ~kept), bits)
        return following

    def _key(self, part: dict[str, Any]) -> tuple[str, int]:
        if part["type"] == "lookahead":
            return "", part["value"][1]
        name, one = part["value"][:2]
        fields = self._headers.get(name) or self._stacks.get(name, [])
        return name, next((bits for field, bits in fields if field == one), 0)

    def _real(self) -> bytes:
        """Ethernet, perhaps a VLAN tag, IPv4 or IPv6, TCP or UDP, with right lengths and checksums."""
        values, random = self._values, self._random
        ethernet = values.some(48).to_bytes(6, "big") + values.some(48).to_bytes(6, "big")
        if random.random() < 0.2:
            ethernet += struct.pack(">HH", 0x8100, values.some(16))
        four = random.random() < 0.6
        protocol = random.choice((6, 6, 6, 17, values.some(8)))
        addresses = [values.some(32 if four else 128).to_bytes(4 if four else 16, "big") for _ in range(2)]
        payload = self._payload()
        above = self._above(protocol, payload)
        pseudo = b"".join(addresses) + struct.pack(">HH", protocol, len(above))
        at = {6: 16, 17: 6}.get(protocol)
        if at is not None:
            above = above[:at] + checksum(pseudo + above).to_bytes(2, "big") + above[at + 2 :]
        traffic = random.choice((0, 1, 2, 3, values.some(8)))
        if not four:
            head = struct.pack(">IHBB", 6 << 28 | traffic << 20 | values.some(20), len(above), protocol, values.some(8))
            return ethernet + b"\x86\xdd" + head + b"".join(addresses) + above
        options = random.randbytes(4 * random.choice((0, 0, 0, 0, 1, 2)))
        fragment = random.choice((0, 0, 0x4000, 0x4000, 0x4000, 0x2000, values.some(16)))
        head = struct.pack(
            ">BBHHHBBH", 0x45 + len(options) // 4, traffic, 20 + len(options) + len(above), values.some(16), fragment,
            values.some(8), protocol, 0,
        ) + b"".join(addresses) + options  # fmt: skip
        return ethernet + b"\x08\0" + head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + above

    def _above(self, protocol: int, payload: bytes) -> bytes:
        values, random = self._values, self._random
        ports = struct.pack(">HH", values.some(16), values.some(16))
        if protocol == 17:
            return ports + struct.pack(">HH", 8 + len(payload), 0) + payload
        if protocol != 6:
            return payload
        options = bytes(4 * random.choice((0, 0, 3, 5)))
        flags = random.choice((0x10, 0x10, 0x18, 0x02, 0x12, 0x11, 0x04, values.some(8)))
        number = (values.some(32) + random.choice((0, 0, 1, len(payload)))) & 0xFFFFFFFF
        head = struct.pack(
            ">IIHHHH", number, values.some(32), (5 + len(options) // 4) << 12 | flags, values.some(16), 0, 0
        )
        return ports + head + options + payload


def _overlay(header: dict[str, Bits], ahead: list[tuple[int, Bits]]) -> None:
    """Write what was looked ahead for into the fields it lies in."""
    at = 0
    for name, (value, bits) in header.items():
        for offset, (wanted, width) in ahead:
            for bit in range(max(at, offset), min(at + bits, offset + width)):
                place = at + bits - 1 - bit
                new = (wanted >> (offset + width - 1 - bit)) & 1
                value = (value & ~(1 << place)) | (new << place)
        header[name] = (value, bits)
        at += bits


def _pack(fields: list[Bits]) -> bytes:
    number = width = 0
    for value, bits in fields:
        number, width = (number << bits) | (value & ((1 << bits) - 1)), width + bits
    return (number << (-width % 8)).to_bytes((width + 7) // 8, "big")
