# SPDX-License-Identifier: Apache-2.0
"""A model of BPF instructions in Python, and random programs of them: the reference of the lab's JIT.

Source: Documentation/bpf/standardization/instruction-set.rst.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

Insn = tuple[int, int, int, int]
"""code, registers (source in the upper half), offset, immediate"""

U64 = (1 << 64) - 1
STACK = 512
ALU: dict[int, Callable[[int, int], int]] = {
    0x00: lambda a, b: a + b, 0x10: lambda a, b: a - b, 0x20: lambda a, b: a * b, 0x30: lambda a, b: a // b,
    0x40: lambda a, b: a | b, 0x50: lambda a, b: a & b, 0x80: lambda a, _: -a, 0x90: lambda a, b: a % b,
    0xA0: lambda a, b: a ^ b, 0xB0: lambda _, b: b,
}  # fmt: skip
TESTS: dict[int, Callable[[int, int, int, int], bool]] = {
    0x10: lambda a, b, sa, sb: a == b, 0x20: lambda a, b, sa, sb: a > b, 0x30: lambda a, b, sa, sb: a >= b,
    0x40: lambda a, b, sa, sb: a & b != 0, 0x50: lambda a, b, sa, sb: a != b, 0x60: lambda a, b, sa, sb: sa > sb,
    0x70: lambda a, b, sa, sb: sa >= sb, 0xA0: lambda a, b, sa, sb: a < b, 0xB0: lambda a, b, sa, sb: a <= b,
    0xC0: lambda a, b, sa, sb: sa < sb, 0xD0: lambda a, b, sa, sb: sa <= sb,
}  # fmt: skip
BYTES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}
EDGES = (0, 1, -1, 8, 255, 256, -128, 0x7FFFFFFF, -0x80000000, 0x12345678)
SCRATCH = (0, 2, 3, 4, 5, 7, 8, 9)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def pack(code: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> bytes:
    return struct.pack("<BBhi", code, dst | src << 4, off, signed(imm, 32))


class Machine:
    """Runs a program; `context` is the memory that R1 points to, at address `base`.

    The only helper is a sum with weights; a call of a function is code 0xe5, as the verifier leaves it.
    """

    def __init__(self, program: bytes, context: bytearray, base: int) -> None:
        self.insns: list[Insn] = list(struct.iter_unpack("<BBhi", program))
        self.context, self.base = context, base

    def run(self, at: int = 0, arguments: tuple[int, ...] = (0, 0, 0, 0)) -> int:
        regs = [0, self.base if at == 0 else arguments[0], *arguments[at > 0 :], 0, 0, 0, 0, 0, 0][:10]
        stack = bytearray(STACK)
        while True:
            code, both, off, imm = self.insns[at]
            dst, src, kind, op = both & 15, both >> 4, code & 7, code & 0xF0
            if kind in (4, 7):
                regs[dst] = self._alu(code, regs[dst], regs[src], imm)
            elif code == 0x18:
                at += 1
                regs[dst] = imm & 0xFFFFFFFF | (self.insns[at][3] & 0xFFFFFFFF) << 32
            elif kind in (1, 2, 3):
                self._memory(code, regs, dst, src, off, imm, stack)
            elif op == 0x90:
                return regs[0]
            elif code == 0x85:
                regs[0] = sum(weight * value for weight, value in zip((3, 5, 7, 11, 13), regs[1:6], strict=True)) & U64
            elif code == 0xE5:
                regs[0] = self.run(at + 1 + off, tuple(regs[1:6]))
            elif op == 0 or self._test(code, regs[dst], regs[src] if code & 8 else imm):
                at += off
            at += 1

    @staticmethod
    def _alu(code: int, a: int, b: int, imm: int) -> int:
        bits, op = 64 if code & 7 == 7 else 32, code & 0xF0
        mask = (1 << bits) - 1
        if op == 0xD0:
            cut = a & ((1 << imm) - 1)
            return int.from_bytes(cut.to_bytes(imm // 8, "little"), "big") if code & 8 else cut
        a, b = a & mask, (b if code & 8 else imm) & mask
        if op in (0x60, 0x70, 0xC0):
            b &= bits - 1
            return (a << b if op == 0x60 else a >> b if op == 0x70 else signed(a, bits) >> b) & mask
        return ALU[op](a, b) & mask

    def _memory(self, code: int, regs: list[int], dst: int, src: int, off: int, imm: int, stack: bytearray) -> None:
        size = BYTES[code & 0x18]
        base = src if code & 7 == 1 else dst
        held, at = (stack, STACK + off) if base == 10 else (self.context, regs[base] - self.base + off)
        now = int.from_bytes(held[at : at + size], "little")
        if code & 7 == 1:
            regs[dst] = now
            return
        value = imm if code & 7 == 2 else regs[src]
        value += now if code & 0xE0 == 0xC0 else 0
        held[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    @staticmethod
    def _test(code: int, a: int, b: int) -> bool:
        bits = 64 if code & 7 == 5 else 32
        mask = (1 << bits) - 1
        return TESTS[code & 0xF0](a & mask, b & mask, signed(a, bits), signed(b, bits))


def program(rng: random.Random) -> bytes:
    """Random instructions, ending in all registers' exclusive or; a second function may be called."""
    calls: list[int] = []
    main = _function(rng, rng.randrange(1, 60), calls)
    whole = bytearray(main + _function(rng, rng.randrange(1, 30), None))
    for at in calls:
        struct.pack_into("<h", whole, at * 8 + 2, len(main) // 8 - at - 1)
    return bytes(whole)


def _function(rng: random.Random, count: int, calls: list[int] | None) -> bytes:
    out = bytearray(pack(0xBF, 6, 1))
    for reg in SCRATCH:
        out += pack(0x18, reg, imm=rng.getrandbits(32)) + pack(0, imm=rng.getrandbits(32))
    for _ in range(count):
        kind, dst, src = rng.random(), rng.choice(SCRATCH), rng.choice(SCRATCH)
        imm = rng.choice((*EDGES, rng.getrandbits(32)))
        if kind < 0.5:
            out += _arithmetic(rng, dst, src, imm)
        elif kind < 0.7:
            out += _access(rng, dst, src, imm, own=calls is None)
        elif kind < 0.9:
            code = rng.choice((5, 6)) | rng.choice(list(TESTS)) | rng.choice((0, 8))
            register = bool(code & 8)
            out += pack(code, dst, src if register else 0, 1, 0 if register else imm) + pack(0xBF, dst, src)
        else:
            out += pack(0xBF, 1, src)
            if calls is not None and kind > 0.95:
                calls.append(len(out) // 8)
                out += pack(0xE5)
            else:
                out += pack(0x85)
            for reg in range(1, 6):  # a call leaves nothing in them
                out += pack(0xB7, reg, imm=rng.choice(EDGES))
    for reg in SCRATCH[1:]:
        out += pack(0xAF, 0, reg)
    return bytes(out + pack(0x95))


def _arithmetic(rng: random.Random, dst: int, src: int, imm: int) -> bytes:
    kind, op, register = rng.choice((4, 7)), rng.choice((*ALU, 0x60, 0x70, 0xC0, 0xD0)), rng.choice((0, 8))
    if op == 0xD0:
        return pack(0xD4 | register, dst, imm=rng.choice((16, 32, 64)))
    if op == 0x80:
        return pack(kind | op, dst)
    if op in (0x60, 0x70, 0xC0) and not register:
        imm = rng.randrange(64 if kind == 7 else 32)
    before = b""
    if op in (0x30, 0x90):  # never by zero: the verifier sees to that
        before = pack(0x47 if kind == 7 else 0x44, src, imm=1) if register else b""
        imm = imm or 3
    return before + pack(kind | op | register, dst, src if register else 0, imm=0 if register else imm)


def _access(rng: random.Random, dst: int, src: int, imm: int, own: bool) -> bytes:
    """To the context, or to the function's own stack, where nothing is read that was not written."""
    base, at = (10, -8 * rng.randrange(1, 65)) if own or rng.random() < 0.5 else (6, 8 * rng.randrange(0, 30))
    size = rng.choice(list(BYTES))
    before = pack(0x7B, 10, src, at) if base == 10 else b""
    return before + rng.choice(
        (
            pack(0x61 | size, dst, base, at),
            pack(0x63 | size, base, src, at),
            pack(0x62 | size, base, 0, at, imm),
            pack(0xC3 | rng.choice((0, 0x18)), base, src, at),
        )
    )
