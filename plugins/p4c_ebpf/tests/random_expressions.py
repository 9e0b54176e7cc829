# SPDX-License-Identifier: Apache-2.0
"""Random P4 expressions: each as the JSON that p4c writes for it, and as P4-16 defines it, in Python.

Source of the meaning: P4-16 language specification, section 8 (bit<W> wraps, int<W> is two's complement, saturating
operators clamp, a shift by W or more gives 0 or the sign).  BMv2 has whole numbers without bounds, so p4c writes
the wrap around each operation: `& mask` of bit<W>, two_comp_mod of int<W>, usat_cast and sat_cast of |+| and |-|.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from plugins.p4c_ebpf.tests.documents import Json, apply, element, field, number

OPERANDS: tuple[tuple[str, int, bool], ...] = (
    ("a", 8, False), ("b", 8, False), ("c", 5, False), ("d", 3, False), ("e", 1, False), ("f", 15, False),
    ("g", 32, False), ("h", 64, False), ("k", 64, False), ("l", 100, False), ("m", 128, False), ("n", 20, False),
    ("o", 8, True), ("p", 8, True), ("q", 33, True), ("r", 7, True), ("s", 64, True), ("t", 127, True), ("u", 1, True),
)  # fmt: skip
"""Of the header `given`: name, bits, signed."""
CELLS = 4
"""Headers of the stack `cell`, each of one field of 16 bits."""

Env = Mapping[str, int]
"""A packet's values: operand → value, "cell0" … → value."""


def wrap(value: int, width: int, signed: bool) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if signed and value >> (width - 1) else value


def least_most(width: int, signed: bool) -> tuple[int, int]:
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)


@dataclass(frozen=True)
class Expression:
    """width 0: a bool.  p4: as a person reads it."""

    width: int
    signed: bool
    json: Json
    p4: str
    value: Callable[[Env], int]


def _cut(json: Json, width: int, signed: bool) -> Json:
    return apply("two_comp_mod", json, number(width)) if signed else apply("&", json, number((1 << width) - 1))


_MEANING: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
    "&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
}  # fmt: skip


class Maker:
    """Draws expressions from one Random."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def expression(self, width: int, signed: bool, depth: int) -> Expression:
        """One of type bit<width> or int<width>."""
        kinds = [self._operand, self._number]
        if depth > 0:
            kinds = [
                self._operand, self._arithmetic, self._arithmetic, self._bits, self._saturated, self._complement,
                self._minus, self._shift, self._choice, self._cast, self._cell,
            ]  # fmt: skip
            if not signed:
                kinds += [self._slice, self._concatenation, self._truth]
        return self.random.choice(kinds)(width, signed, depth - 1)

    def convert(self, one: Expression, width: int, signed: bool) -> Expression:
        """The legal casts in turn: to the width, then to the signedness."""
        if one.width != width:
            json = one.json if width > one.width else _cut(one.json, width, one.signed)
            inner = one
            one = Expression(
                width, one.signed, json, f"({'int' if one.signed else 'bit'}<{width}>)({one.p4})",
                lambda env: wrap(inner.value(env), width, inner.signed),
            )  # fmt: skip
        if one.signed != signed:
            other = one
            one = Expression(
                width, signed, _cut(one.json, width, signed), f"({'int' if signed else 'bit'}<{width}>)({one.p4})",
                lambda env: wrap(other.value(env), width, signed),
            )  # fmt: skip
        return one

    # leaves

    def _operand(self, width: int, signed: bool, depth: int) -> Expression:
        name, bits, kind = self.random.choice(OPERANDS)
        return self.convert(Expression(bits, kind, field("given", name), name, lambda env: env[name]), width, signed)

    def _number(self, width: int, signed: bool, depth: int) -> Expression:
        low, high = least_most(width, signed)
        drawn = self.random.choice([low, high, 0, self.random.randint(low, high)])
        return Expression(width, signed, number(drawn), str(drawn), lambda env: drawn)

    def _cell(self, width: int, signed: bool, depth: int) -> Expression:
        index = self.expression(2, False, 0)
        one = Expression(
            16, False, element("cell", index.json, 0), f"cell[{index.p4}]", lambda env: env[f"cell{index.value(env)}"]
        )
        return self.convert(one, width, signed)

    # operators

    def _two(self, width: int, signed: bool, depth: int) -> tuple[Expression, Expression]:
        return self.expression(width, signed, depth), self.expression(width, signed, depth)

    def _arithmetic(self, width: int, signed: bool, depth: int) -> Expression:
        op = self.random.choice("+-*" if width <= 64 else "+-")
        a, b = self._two(width, signed, depth)
        return Expression(
            width, signed, _cut(apply(op, a.json, b.json), width, signed), f"({a.p4} {op} {b.p4})",
            lambda env: wrap(_MEANING[op](a.value(env), b.value(env)), width, signed),
        )  # fmt: skip

    def _bits(self, width: int, signed: bool, depth: int) -> Expression:
        op = self.random.choice("&|^")
        a, b = self._two(width, signed, depth)
        return Expression(
            width, signed, apply(op, a.json, b.json), f"({a.p4} {op} {b.p4})",
            lambda env: wrap(_MEANING[op](a.value(env), b.value(env)), width, signed),
        )  # fmt: skip

    def _saturated(self, width: int, signed: bool, depth: int) -> Expression:
        op = self.random.choice("+-")
        a, b = self._two(width, signed, depth)
        low, high = least_most(width, signed)
        cast = "sat_cast" if signed else "usat_cast"
        return Expression(
            width, signed, apply(cast, apply(op, a.json, b.json), number(width)), f"({a.p4} |{op}| {b.p4})",
            lambda env: min(max(_MEANING[op](a.value(env), b.value(env)), low), high),
        )  # fmt: skip

    def _complement(self, width: int, signed: bool, depth: int) -> Expression:
        a = self.expression(width, signed, depth)
        json = _cut(apply("~", None, a.json), width, signed)
        return Expression(width, signed, json, f"~{a.p4}", lambda env: wrap(~a.value(env), width, signed))

    def _minus(self, width: int, signed: bool, depth: int) -> Expression:
        a = self.expression(width, signed, depth)
        json = _cut(apply("-", None, a.json), width, signed)
        return Expression(width, signed, json, f"-{a.p4}", lambda env: wrap(-a.value(env), width, signed))

    def _shift(self, width: int, signed: bool, depth: int) -> Expression:
        op, a = self.random.choice(["<<", ">>"]), self.expression(width, signed, depth)
        if width > 64 or self.random.random() < 0.5:
            by = self._number(max(width.bit_length(), 2), False, 0)
        else:
            by = self.expression(self.random.choice([3, 6, 8]), False, min(depth, 1))
        json = apply(op, a.json, by.json)

        def value(env: Env) -> int:
            n = min(by.value(env), 512)
            return wrap(a.value(env) << n if op == "<<" else a.value(env) >> n, width, signed)

        return Expression(
            width, signed, _cut(json, width, signed) if op == "<<" else json, f"({a.p4} {op} {by.p4})", value
        )

    def _choice(self, width: int, signed: bool, depth: int) -> Expression:
        test, (a, b) = self.truth(depth), self._two(width, signed, depth)
        return Expression(
            width, signed, apply("?", a.json, b.json, test.json), f"({test.p4} ? {a.p4} : {b.p4})",
            lambda env: a.value(env) if test.value(env) else b.value(env),
        )  # fmt: skip

    def _cast(self, width: int, signed: bool, depth: int) -> Expression:
        bits = self.random.choice([1, 4, 8, 16, 31, 32, 33, 63, 64, 65, 100, 128])
        return self.convert(self.expression(bits, self.random.random() < 0.5, depth), width, signed)

    def _slice(self, width: int, signed: bool, depth: int) -> Expression:
        bits = self.random.randint(width, min(width + 40, 128))
        low = self.random.randint(0, bits - width)
        a = self.expression(bits, False, depth)
        json = apply("&", apply(">>", a.json, number(low)), number((1 << width) - 1))
        return Expression(
            width, False, json, f"{a.p4}[{low + width - 1}:{low}]", lambda env: wrap(a.value(env) >> low, width, False)
        )

    def _concatenation(self, width: int, signed: bool, depth: int) -> Expression:
        if width < 2:
            return self._operand(width, signed, depth)
        right = self.random.randint(1, width - 1)
        a, b = self.expression(width - right, False, depth), self.expression(right, False, depth)
        upper = apply("&", apply("<<", a.json, number(right)), number((1 << width) - 1))
        json = apply("|", upper, apply("&", b.json, number((1 << right) - 1)))
        return Expression(width, False, json, f"({a.p4} ++ {b.p4})", lambda env: a.value(env) << right | b.value(env))

    def _truth(self, width: int, signed: bool, depth: int) -> Expression:
        test = self.truth(depth)
        one = Expression(1, False, apply("b2d", None, test.json), f"(bit<1>)({test.p4})", test.value)
        return self.convert(one, width, signed)

    def truth(self, depth: int) -> Expression:
        """A bool."""
        drawn = self.random.random()
        if depth > 0 and drawn < 0.3:
            op, a, b = self.random.choice(["and", "or"]), self.truth(depth - 1), self.truth(depth - 1)
            return Expression(
                0, False, apply(op, a.json, b.json), f"({a.p4} {op} {b.p4})",
                lambda env: int(a.value(env) and b.value(env) if op == "and" else a.value(env) or b.value(env)),
            )  # fmt: skip
        if depth > 0 and drawn < 0.4:
            inner = self.truth(depth - 1)
            return Expression(
                0, False, apply("not", None, inner.json), f"!{inner.p4}", lambda env: int(not inner.value(env))
            )
        signed = self.random.random() < 0.4
        op = self.random.choice(["==", "!="] if drawn < 0.5 else ["<", "<=", ">", ">="])
        a, b = self._two(self.random.choice([1, 7, 8, 33, 64, 128]), signed, max(depth, 0))
        return Expression(
            0, False, apply(op, a.json, b.json), f"({a.p4} {op} {b.p4})",
            lambda env: int(_MEANING[op](a.value(env), b.value(env))),
        )  # fmt: skip

    # packets

    def values(self) -> dict[str, int]:
        """Of one packet; edges as often as any other value."""
        cells: Sequence[tuple[str, int, bool]] = [(f"cell{at}", 16, False) for at in range(CELLS)]
        found = {}
        for name, width, signed in (*OPERANDS, *cells):
            low, high = least_most(width, signed)
            edge = self.random.choice([low, high, 0, min(1, high), max(low, high - 1), self.random.randint(low, high)])
            found[name] = edge if self.random.random() < 0.5 else self.random.randint(low, high)
        return found
