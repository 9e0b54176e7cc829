# SPDX-License-Identifier: Apache-2.0
"""Checksums over the payload: verified and written, of packets of any length."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from plugins.p4c_ebpf.tests.documents import refusal
from plugins.p4c_ebpf.tests.harness import Target
from plugins.p4c_ebpf.tests.packets import IPV4, checksum, ethernet, ipv4
from plugins.p4c_ebpf.tests.program_files import committed

UDP = 17


def packet(payload: bytes, port: int, wrong: int = 0) -> bytes:
    """A UDP packet to a port, whose checksum is off by `wrong`."""
    head = ipv4(1, 2, protocol=UDP, length=28 + len(payload))
    size = 8 + len(payload)
    pseudo = head[12:20] + struct.pack(">HHHHH", UDP, size, 1000, port, size)
    return ethernet(IPV4) + head + struct.pack(">4H", 1000, port, size, checksum(pseudo + payload) ^ wrong) + payload


@pytest.mark.root
def test_they_are_those_of_packets_of_any_length(target: Target) -> None:
    one, drawn = target("payload"), random.Random(1)
    for size in [*range(20), *range(500, 520), *range(1020, 1028), *(drawn.randrange(3400) for _ in range(40))]:
        payload = drawn.randbytes(size)
        assert one.inject(1, packet(payload, 53)) == [(2, packet(payload, 4242))], size
        wrong = packet(payload, 53, wrong=1)
        ((port, sent),) = one.inject(1, wrong)
        assert (port, sent) == (3, packet(payload, 53)), "it is right when it leaves"


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda one: one.update(algo="crc32"), "a hash over the payload"),
        (lambda one: one["input"].insert(0, one["input"].pop()), "a checksum over more, or an odd number of bytes"),
        (lambda one: one["input"].pop(2), "a checksum over more, or an odd number of bytes"),
    ],
    ids=["hash", "first", "odd"],
)
def test_what_is_refused(change: Callable[[dict[str, object]], None], refused: str) -> None:
    document = committed("payload")
    for calculation in document["calculations"]:
        change(calculation)
    assert refused in refusal(document)
