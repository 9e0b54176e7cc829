# SPDX-License-Identifier: Apache-2.0
"""A small sample of the comparison of eBPF with BMv2; differential.py at scale is run by hand."""

from __future__ import annotations

import json
from random import Random

import pytest
from testctl_bmv2 import p4info, simple_switch

from plugins.p4c_ebpf.tests.packets import checksum
from plugins.p4c_ebpf.tests.program_files import Program, programs
from plugins.p4c_ebpf.tests.random_packets import MIN, Maker
from plugins.p4c_ebpf.tests.random_rows import Values, rows

PACKETS, SEED = 100, 7
EVERY = pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)


@pytest.mark.root
@pytest.mark.skipif(bool(simple_switch.unavailable()), reason=simple_switch.unavailable())
@EVERY
def test_both_do_the_same(program: Program) -> None:
    from plugins.p4c_ebpf.tests.differential import LEFT_OUT, compare

    if program.name in LEFT_OUT:
        pytest.skip(LEFT_OUT[program.name])
    result = compare(program, PACKETS, SEED)
    assert not result.difference, result.difference
    assert result.packets == PACKETS
    assert result.ipv6 or program.name not in ("testbed", "ipv6"), "some are of IPv6"


@EVERY
def test_the_seed_decides_rows_and_packets(program: Program) -> None:
    def made() -> tuple[object, list[bytes]]:
        values = Values(Random(SEED))
        found = rows(p4info.read(program.info), values)
        maker = Maker(json.loads(program.json.read_text()), values)
        return found, [maker.packet() for _ in range(200)]

    first, second = made(), made()
    assert first == second
    assert min(map(len, first[1])) >= MIN
    assert len(set(first[1])) > 100


def test_the_checksum_of_an_ipv4_header() -> None:
    """A header whose sum was worked out by hand."""
    header = bytes.fromhex("450000730000400040110000c0a80001c0a800c7")
    assert checksum(header) == 0xB861
