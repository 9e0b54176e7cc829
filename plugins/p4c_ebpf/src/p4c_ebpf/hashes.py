# SPDX-License-Identifier: Apache-2.0
"""`calculations` as C: the bytes that are covered, and checksums and hashes over them.

The covered fields are laid one after the other, most significant bit first.  Those of a header that
is not valid are left out; as such a header is all zeros, a checksum need not look.  Source of each
algorithm: behavioral-model, src/bm_sim/calculations.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4c_ebpf import fields
from p4c_ebpf.code import Code
from p4c_ebpf.document import Node
from p4c_ebpf.expression import Scope
from p4c_ebpf.fields import constant
from p4c_ebpf.model import Header, Program

_ALIASES = {"crc32_custom": "crc32", "crc16_custom": "crc16", "cksum16": "csum16"}
_POLYNOMIALS = {"crc32": (32, 0xEDB88320), "crc16": (16, 0xA001)}
PAYLOAD = "p->payload"
"""The sum of the bytes behind the headers, as they lie (runtime/payload.h)."""
WIDTHS = {"crc32": 32, "crc16": 16, "csum16": 16, "xor16": 16, "identity": 64}


@dataclass(frozen=True)
class _Input:
    """`bits` bits: of a header's bytes from bit `offset`, or of the C value `text`."""

    bits: int
    header: Header | None
    offset: int
    text: str


@dataclass
class _Group:
    """Inputs that are covered together or not at all."""

    header: Header | None
    inputs: list[_Input]

    @property
    def bits(self) -> int:
        return sum(one.bits for one in self.inputs)


def algorithm(calculation: Node) -> str:
    name = calculation["algo"].text()
    name = _ALIASES.get(name, name)
    if name not in WIDTHS:
        calculation.cannot(f"the algorithm {name}")
    return name


def _inputs(scope: Scope, calculation: Node) -> list[_Input]:
    found: list[_Input] = []
    program = scope.program
    for one in calculation["input"]:
        kind = one.kind()
        if kind == "payload":
            if algorithm(calculation) != "csum16":
                one.cannot("a hash over the payload")
            if one.path != calculation["input"].items()[-1].path or sum(each.bits for each in found) % 16:
                one.cannot("a checksum over more, or an odd number of bytes, around the payload")
            found.append(_Input(0, None, 0, PAYLOAD))
            continue
        if kind == "hexstr":
            width = one["bitwidth"].size(128, "bits of a constant")
            number = one["value"].hexadecimal() & (1 << width) - 1
            found.append(_Input(width, None, 0, constant(number)))
            continue
        if kind == "header":
            header = program.header(one["value"])
            covered = [(field, header) for field in header.fields.values()]
            if header.extra and algorithm(calculation) != "csum16":
                one.cannot("a hash over a field of variable length")
        elif kind == "field" and program.field(one["value"]).variable:
            if algorithm(calculation) != "csum16":
                one.cannot("a hash over a field of variable length")
            variable = program.field(one["value"])
            covered = [(variable, program.headers[variable.header])]
        elif (place := scope.place(one)) is not None:
            covered = [place]
        else:
            one.cannot(f"a checksum or hash over a value of type {kind}")
        for field, header in covered:
            if header.metadata:
                found.append(_Input(field.width, None, 0, fields.load(field, header)))
            else:
                found.append(_Input(field.width, header, field.offset, ""))
    return found


def _groups(inputs: list[_Input]) -> list[_Group]:
    groups: list[_Group] = []
    for one in inputs:
        last = groups[-1].inputs[-1] if groups else None
        if last and last.header is one.header is not None and last.offset + last.bits == one.offset:
            groups[-1].inputs[-1] = _Input(last.bits + one.bits, one.header, last.offset, "")
        elif groups and groups[-1].header is one.header:
            groups[-1].inputs.append(one)
        else:
            groups.append(_Group(one.header, [one]))
    return groups


def _bits(group: _Group, start: int, width: int) -> str:
    """C of bits [start, start + width) of a group, zeros after its end; width is at most 16."""
    parts = []
    at = 0
    for one in group.inputs:
        low, high = max(start, at), min(start + width, at + one.bits)
        if low < high:
            take, left = high - low, start + width - high
            if one.header is not None:
                text = fields.load_bits(str(one.header.base), one.offset + low - at, take)
            else:
                drop = at + one.bits - high
                text = f"(({one.text} >> {drop}) & {fields.ones(take)})" if drop or take < one.bits else one.text
            parts.append(f"((u64){text} << {left})" if left else f"(u64){text}")
        at += one.bits
    return f"({' | '.join(parts)})" if parts else "0"


class Hashes:
    """Writes the calculations of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.tables: set[str] = set()

    def emit(self, code: Code, scope: Scope, calculation: Node, result: str) -> None:
        """Set the C variable `result` (u64, declared by the caller)."""
        name = algorithm(calculation)
        found = _inputs(scope, calculation)
        groups = _groups([one for one in found if one.text != PAYLOAD])
        if name == "csum16":
            self._sum(code, groups, result, [one.text for one in found if one.text == PAYLOAD])
        elif name in _POLYNOMIALS:
            self._crc(code, name, groups, calculation, result)
        else:
            self._words(code, name, groups, calculation, result)

    def _sum(self, code: Code, groups: list[_Group], result: str, more: list[str]) -> None:
        """RFC 1071; the words of headers are added as they lie, and swapped at the end (its section 2(B)).

        What a varbit does not fill is zeros, and adds nothing if its bytes are even in number.
        A header of which an odd number of bytes is covered is taken to be valid whenever the others are.
        more: C of sums of other bytes, as they lie.
        """
        whole = _Group(None, [one for group in groups for one in group.inputs])
        as_is = [*more]
        words: dict[int, None] = {}
        at = 0
        for one in whole.inputs:
            if one.header is not None and one.offset % 16 == at % 16 == 0 and one.bits % 16 == 0:
                byte, end = one.header.base + one.offset // 8, one.header.base + (one.offset + one.bits) // 8
                while byte < end:
                    size = 4 if byte % 4 == 0 and byte + 4 <= end else 2
                    as_is.append(f"head{size * 8}(p, {byte})")
                    byte += size
            else:
                words.update(dict.fromkeys(range(at // 16, (at + one.bits + 15) // 16)))
            at += one.bits
        code.add(f"{result} = be16(sum_fold({' + '.join(['(u64)0', *as_is])}));")
        if words:
            added = [_bits(whole, word * 16, 16) for word in words]
            code.add(f"{result} = sum_fold({' + '.join([result, *added])});")
        code.add(f"{result} = ~{result} & 0xffff;")

    def _checked(self, groups: list[_Group], calculation: Node) -> None:
        for group in groups[:-1]:
            if group.bits % 8:
                calculation.cannot("a hash over part of a byte, followed by another header")

    def _crc(self, code: Code, name: str, groups: list[_Group], calculation: Node, result: str) -> None:
        self._checked(groups, calculation)
        self.tables.add(name)
        start = "0xffffffff" if name == "crc32" else "0"
        code.add(f"{result} = {start};")
        for group in groups:
            with code.block(f"if (p->valid & {group.header.mask})" if group.header else ""):
                for at in range(0, group.bits, 8):
                    code.add(f"{result} = {name}_byte({result}, {_bits(group, at, 8)});")
        if name == "crc32":
            code.add(f"{result} ^= 0xffffffff;")

    def _words(self, code: Code, name: str, groups: list[_Group], calculation: Node, result: str) -> None:
        """identity: the first 8 bytes; xor16: all 16-bit words, the last one filled up with zeros."""
        self._checked(groups, calculation)
        odd = name == "identity" or any(group.bits % 16 for group in groups[:-1])
        if odd and sum(group.header is not None for group in groups) > 0 and len(groups) > 1:
            calculation.cannot(f"{name} over several headers")
        group = _Group(None, [one for each in groups for one in each.inputs])
        code.add(f"{result} = 0;")
        if name == "identity":
            size = min(group.bits + 7, 64) // 8
            parts = [f"((u64){_bits(group, at * 8, 8)} << {(size - 1 - at) * 8})" for at in range(size)]
            code.add(f"{result} = {' | '.join(parts) or '0'};")
            return
        code.add(f"{result} = {' ^ '.join(_bits(group, at, 16) for at in range(0, group.bits, 16)) or '0'};")

    def definitions(self) -> str:
        """Tables and functions that what was emitted needs; they stand before it."""
        text = (
            "static __always_inline u64 sum_fold(u64 sum)\n{\n"
            "\tsum = (sum & 0xffffffff) + (sum >> 32);\n\tsum = (sum & 0xffff) + (sum >> 16);\n"
            "\tsum = (sum & 0xffff) + (sum >> 16);\n\treturn (sum & 0xffff) + (sum >> 16);\n}\n"
        )
        for name in sorted(self.tables):
            width, polynomial = _POLYNOMIALS[name]
            rows = []
            for byte in range(256):
                value = byte
                for _ in range(8):
                    value = value >> 1 ^ (polynomial if value & 1 else 0)
                rows.append(f"{value:#x}")
            lines = ",\n".join("\t" + ", ".join(rows[at : at + 8]) for at in range(0, 256, 8))
            text += (
                f"\nstatic const u{width} {name}_table[256] = {{\n{lines},\n}};\n\n"
                f"static __always_inline u64 {name}_byte(u64 crc, u64 byte)\n{{\n\tu64 at = crc ^ byte;\n\n"
                "\topaque(at);\t/* or the mask is moved before the xor, which the verifier does not follow */\n"
                f"\treturn {name}_table[at & 0xff] ^ (crc >> 8);\n}}\n"
            )
        return text
