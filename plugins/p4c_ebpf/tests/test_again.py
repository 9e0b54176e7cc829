# SPDX-License-Identifier: Apache-2.0
"""Packets that come again: resubmitted as they came, recirculated as they would have left."""

from __future__ import annotations

import struct

import pytest
from p4c_ebpf.copies import ROUNDS
from testctl_bmv2 import simple_switch

from plugins.p4c_ebpf.tests.bmv2_target import Bmv2Target
from plugins.p4c_ebpf.tests.harness import Target
from plugins.p4c_ebpf.tests.packets import ethernet
from plugins.p4c_ebpf.tests.program_files import PROGRAMS

RECIRCULATED, RESUBMITTED = 4 << 4, 6 << 4
REPLICATION = 5
EVERYBODY = 2**48 - 1
pytestmark = pytest.mark.root


def packet(
    resubmit: int = 0, recirculate: int = 0, found: tuple[int, int, int, int] = (0, 0, 0, 0), **to: int
) -> bytes:
    """found: rounds, kind (in ingress; of a copy in egress, of others it is 0 there), kept, lost."""
    return ethernet(0x9999, **to) + struct.pack(">4B2I", resubmit, recirculate, *found) + bytes(60)


@pytest.mark.parametrize(
    ("sent", "leaves"),
    [
        (packet(), packet()),
        # list 1 has `rounds` alone
        (packet(resubmit=1), packet(resubmit=1, found=(1, RESUBMITTED, 0, 0))),
        (packet(resubmit=ROUNDS), packet(resubmit=ROUNDS, found=(ROUNDS, RESUBMITTED, 0, 0))),
        (packet(recirculate=1), packet(found=(1, RECIRCULATED, 1, 0))),
        (packet(recirculate=ROUNDS), packet(found=(ROUNDS, RECIRCULATED, ROUNDS, 0))),
        (packet(1, 1), packet(1, 0, found=(2, RECIRCULATED, 1, 0))),
    ],
)
def test_it_keeps_what_its_list_says(target: Target, sent: bytes, leaves: bytes) -> None:
    one = target("again")
    assert one.inject(1, sent) == [(2, leaves)]
    assert one.inject(1, packet()) == [(2, packet())], "and leaves nothing to the next packet"


@pytest.mark.parametrize("asked", [{"resubmit": ROUNDS + 1}, {"recirculate": ROUNDS + 1}])
def test_what_comes_too_often_is_lost(target: Target, asked: dict[str, int]) -> None:
    one = target("again")
    assert one.inject(1, packet(**asked)) == []
    assert one.inject(1, packet()) == [(2, packet())]


def test_a_copy_of_a_group_is_lost(target: Target) -> None:
    one = target("again")
    one.driver.multicast(7, [2, 3])
    assert one.inject(1, packet(recirculate=1, dst=EVERYBODY)) == []
    found = (0, REPLICATION, 0, 0)
    assert one.inject(1, packet(dst=EVERYBODY)) == [(port, packet(dst=EVERYBODY, found=found)) for port in (2, 3)]


@pytest.mark.skipif(bool(simple_switch.unavailable()), reason=simple_switch.unavailable())
def test_bmv2_does_the_same(target: Target) -> None:
    one = target("again")
    with Bmv2Target(PROGRAMS / "again.json", PROGRAMS / "again.p4info.txtpb") as other:
        for sent in (packet(), packet(resubmit=1), packet(resubmit=ROUNDS), packet(recirculate=ROUNDS), packet(2, 2)):
            assert one.inject(1, sent) == other.inject(1, sent)
