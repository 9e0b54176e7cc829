# SPDX-License-Identifier: Apache-2.0
"""Random expressions in the kernel give what P4-16 says."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from p4c_ebpf.errors import ProgramError
from p4c_ebpf.translate import translate_text

from plugins.p4c_ebpf.tests.documents import Document, Make, assign, document, field
from plugins.p4c_ebpf.tests.random_expressions import CELLS, OPERANDS, Expression, Maker

pytestmark = pytest.mark.root

PROGRAMS, EACH, PACKETS = 4, 30, 60
WIDTHS = (1, 4, 8, 8, 13, 16, 32, 33, 48, 63, 64, 64, 65, 100, 127, 128)
PAYLOAD = bytes(range(40))


def padded(fields: list[tuple[str, int, bool]]) -> list[tuple[str, int, bool]]:
    spare = -sum(width for _, width, _ in fields) % 8
    return [*fields, ("spare", spare, False)] if spare else fields


def program(chosen: list[Expression]) -> Document:
    """Each expression is assigned to a field of `result`."""
    stack = [f"cell[{at}]" for at in range(CELLS)]
    results = [(f"r{at}", one.width, one.signed) for at, one in enumerate(chosen)]
    return document(
        {"given_t": padded(list(OPERANDS)), "cell_t": [("v", 16)], "result_t": padded(results)},
        {"given": "given_t"} | dict.fromkeys(stack, "cell_t") | {"result": "result_t"},
        [assign(field("result", f"r{at}"), one.json) for at, one in enumerate(chosen)],
        stacks={"cell": stack},
    )


def packed(fields: list[tuple[str, int, bool]], values: dict[str, int]) -> bytes:
    whole = bits = 0
    for name, width, _ in fields:
        whole = whole << width | values.get(name, 0) & (1 << width) - 1
        bits += width
    return whole.to_bytes(bits // 8, "big")


def refusal(one: Expression) -> str:
    try:
        translate_text(json.dumps(program([one])), Path("one.json"))
    except ProgramError as error:
        return str(error)
    return ""


def drawn(maker: Maker) -> list[Expression]:
    """Expressions that can be translated; most can, the others are wider than what is computed."""
    chosen: list[Expression] = []
    refused: list[str] = []
    while len(chosen) < EACH:
        one = maker.expression(maker.random.choice(WIDTHS), maker.random.random() < 0.3, 3)
        if why := refusal(one):
            refused.append(why)
        else:
            chosen.append(one)
    limits = ("more than 128 bits", "more than 64 bits", "to at most 64")
    assert [why for why in refused if not any(limit in why for limit in limits)] == []
    assert len(refused) < EACH
    return chosen


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_expressions(made: Make, seed: int) -> None:
    maker = Maker(Random(seed))
    chosen = drawn(maker)
    results = padded([(f"r{at}", one.width, one.signed) for at, one in enumerate(chosen)])
    target = made(program(chosen))
    for _ in range(PACKETS):
        values = maker.values()
        given = packed(padded(list(OPERANDS)), values)
        cells = b"".join(values[f"cell{at}"].to_bytes(2, "big") for at in range(CELLS))
        size = sum(width for _, width, _ in results) // 8
        [(_, out)] = target.inject(1, given + cells + bytes(size) + PAYLOAD)
        want = {f"r{at}": one.value(values) for at, one in enumerate(chosen)}
        if out != given + cells + packed(results, want) + PAYLOAD:
            bits = int.from_bytes(out[len(given + cells) :][:size], "big")
            for name, width, _ in reversed(results):
                got, bits = bits & (1 << width) - 1, bits >> width
                right = want.get(name, 0) & (1 << width) - 1
                assert got == right, (name, chosen[int(name[1:])].p4, values)
