# SPDX-License-Identifier: Apache-2.0
"""Every kind of expression, against the same in Python: edge values and seeded random ones."""

from __future__ import annotations

import itertools
import random
import struct

import pytest

from plugins.p4c_ebpf.tests.harness import Target
from plugins.p4c_ebpf.tests.packets import ethernet

pytestmark = pytest.mark.root

MIN, MAX, WIDE = -128, 127, (1 << 64) - 1
OPERANDS = struct.Struct(">BBbbQQIH")
RESULTS = struct.Struct(">5B4bBBHBHhBQQQQBBBHQbB")


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def signed(value: int, bits: int = 8) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def expected(a: int, b: int, c: int, d: int, x: int, y: int, n: int, pq: int) -> tuple[int, ...]:
    """What the program computes, in the order of its header."""
    p, q = pq >> 11, pq & 0x7FF
    comparisons = int((c < d and a >= b) or x != y) | (2 if x > y else 0)
    return (
        (a + b) & 255, (a - b) & 255, (a * b) & 255, min(a + b, 255), max(a - b, 0),
        signed(c + d), clamp(c + d, MIN, MAX), clamp(c - d, MIN, MAX), c >> 2,
        (a << b) & 255, a >> b, a << 8 | b, n >> 13 & 255, a, c, a if a > b else 7,
        (x + y) & WIDE, min(x + y, WIDE), (x << 13) & WIDE ^ y >> 7, (x * y) & WIDE,
        comparisons, (a & 0x3C) | (b ^ 0x81), ~a & 255, ((p + 1) & 31) << 3 | ((q - 1) & 0x7FF) >> 8,
        (q - 1) & 255, ((x & 0xFFFFFFFF) * 3 + n) & WIDE ^ ~y & WIDE, signed(-d), (a == 5) + (n != 0),
    )  # fmt: skip


def cases() -> list[tuple[int, ...]]:
    chosen = random.Random(1)
    small, wide = (0, 1, 5, 127, 128, 255), (0, 1, 1 << 63, WIDE)
    edges = [
        (a, b, signed(a), signed(b), x, y, 0xFFFFFFFF, 0xFFFF)
        for (a, b), (x, y) in zip(
            itertools.product(small, small), itertools.cycle(itertools.product(wide, wide)), strict=False
        )
    ]
    drawn = [
        (*(chosen.randrange(256) for _ in "ab"), *(chosen.randrange(-128, 128) for _ in "cd"),
         *(chosen.getrandbits(64) for _ in "xy"), chosen.getrandbits(32), chosen.getrandbits(16))
        for _ in range(200)
    ]  # fmt: skip
    return edges + drawn


def test_expressions(target: Target) -> None:
    one = target("expressions")
    for given in cases():
        [(_, got)] = one.inject(1, ethernet(0x9999) + OPERANDS.pack(*given) + b"rest")
        *head, pq_high, mixed, minus, truth = RESULTS.unpack(got[14 + OPERANDS.size : -4])
        result = (*head, pq_high >> 8, pq_high & 255, mixed, minus, truth)
        assert result == expected(*given), given
        n = given[6] & ~0xFF00 | given[0] << 8
        assert got[14 : 14 + OPERANDS.size] == OPERANDS.pack(*given[:6], n, given[7])
        assert got.endswith(b"rest")
