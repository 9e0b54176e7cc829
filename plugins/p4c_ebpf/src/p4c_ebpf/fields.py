# SPDX-License-Identifier: Apache-2.0
"""C that reads and writes a field: of a header in the bytes of the wire, of metadata as a member."""

from __future__ import annotations

from dataclasses import dataclass

from p4c_ebpf.model import Field, Header

_SIZES = (1, 2, 4, 8)


def c_bits(width: int) -> int:
    """The C integer that holds `width` bits."""
    return next(size * 8 for size in _SIZES if size * 8 >= width)


def ones(width: int) -> str:
    """A mask of `width` bits as a C constant."""
    return constant((1 << width) - 1)


def constant(value: int) -> str:
    """A C constant of any value up to 128 bits; its type is u64, s64 or u128."""
    if value >= 1 << 64:
        return f"(((u128){value >> 64:#x}ULL << 64) | {value & (1 << 64) - 1:#x}ULL)"
    if value < -(1 << 63):
        return f"(-(s128){constant(-value)})"
    if value == -(1 << 63):
        return "((s64)0x8000000000000000ULL)"
    if value < 0:
        return f"((s64){value}LL)"
    return f"{value:#x}ULL" if value > 9 else f"{value}ULL"


@dataclass(frozen=True)
class _Piece:
    """Bits of a field in one aligned word: `width` of them, `shift` above the word's lowest, `low` in the field."""

    at: int
    size: int
    shift: int
    width: int
    low: int


def _pieces(offset: int, width: int) -> list[_Piece]:
    """Cut bits [offset, offset + width) at the 8-byte words, most significant first; each in its smallest word."""
    found: list[_Piece] = []
    begin, end = offset, offset + width
    while begin < end:
        stop = min(end, (begin // 64 + 1) * 64)
        first, last = begin // 8, (stop - 1) // 8
        size = next(s for s in _SIZES if first // s == last // s)
        at = first // size * size
        found.append(_Piece(at, size, (at + size) * 8 - stop, stop - begin, end - stop))
        begin = stop
    return found


def load_bits(base: str, offset: int, width: int) -> str:
    """The value of bits of `head`, as u64, or as u128 if there are more than 64; base is a C sum of bytes."""
    texts = []
    wide = "(u128)" if width > 64 else "(u64)"
    for piece in _pieces(offset, width):
        text = f"be{piece.size * 8}(head{piece.size * 8}(p, {_sum(base, piece.at)}))"
        if piece.shift:
            text = f"({text} >> {piece.shift})"
        if piece.width + piece.shift < piece.size * 8:
            text = f"({text} & {ones(piece.width)})"
        texts.append(f"({wide}{text} << {piece.low})" if piece.low else f"{wide}{text}")
    return texts[0] if len(texts) == 1 else f"({' | '.join(texts)})"


def _sum(base: str, at: int) -> str:
    if base.isdigit():
        return str(int(base) + at)
    return f"{base} + {at}" if at else base


def _whole(offset: int, width: int) -> list[_Piece] | None:
    """The field as words that it fills, if it consists of such; the fewest."""
    if offset % 8 or width % 8:
        return None
    found: list[_Piece] = []
    at, end = offset // 8, (offset + width) // 8
    while at < end:
        size = next(s for s in reversed(_SIZES) if at % s == 0 and at + s <= end)
        found.append(_Piece(at, size, 0, size * 8, (end - at - size) * 8))
        at += size
    return found if len(found) <= 4 else None


def store_bits(base: str, offset: int, width: int, value: str) -> list[str]:
    """Statements that set bits of `head`; `value` is a C variable of u64 or u128 that has no bits above `width`."""
    whole = _whole(offset, width)
    lines = []
    for piece in whole or _pieces(offset, width):
        bits = piece.size * 8
        place = f"head{bits}(p, {_sum(base, piece.at)})"
        part = f"({value} >> {piece.low})" if piece.low else value
        if piece.width == bits:
            lines.append(f"{place} = be{bits}({part});")
            continue
        if piece.low + piece.width < width:
            part = f"({part} & {ones(piece.width)})"
        keep = (1 << bits) - 1 ^ ((1 << piece.width) - 1) << piece.shift
        shifted = f"((u64){part} << {piece.shift})" if piece.shift else part
        lines.append(f"{place} = ({place} & be{bits}({keep:#x}ULL)) | be{bits}({shifted});")
    return lines


def member_type(width: int) -> str:
    return f"u{c_bits(width)}" if width <= 64 else "u64"


def load(field: Field, header: Header) -> str:
    """The field's bits as u64 or u128, unsigned."""
    if header.metadata:
        if field.width > 64:
            return f"(((u128)p->m.{field.member}[0] << 64) | p->m.{field.member}[1])"
        return f"(u64)p->m.{field.member}"
    return load_bits(str(header.base), field.offset, field.width)


def store(field: Field, header: Header, value: str) -> list[str]:
    """Set the field from a C variable that has no bits above its width."""
    if header.metadata:
        if field.width > 64:
            return [f"p->m.{field.member}[0] = {value} >> 64;", f"p->m.{field.member}[1] = {value};"]
        return [f"p->m.{field.member} = {value};"]
    return store_bits(str(header.base), field.offset, field.width, value)
