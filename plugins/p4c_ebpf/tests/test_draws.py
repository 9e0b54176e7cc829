# SPDX-License-Identifier: Apache-2.0
"""random(): in its range, evenly, and the same each time that a program is loaded."""

from __future__ import annotations

import struct
from collections import Counter

import pytest

from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.packets import ethernet

PACKET = ethernet(0x9999) + bytes(60)
MANY = 3000


def drawn(one: EbpfTarget, times: int) -> list[tuple[int, ...]]:
    return [struct.unpack_from(">BBHI", one.inject(1, PACKET)[0][1], 14) for _ in range(times)]


@pytest.mark.root
def test_they_are_even_and_repeat(target: Target) -> None:
    first = drawn(target("draws"), MANY)
    small, one, some, every = zip(*first, strict=True)
    counts = Counter(small)
    assert counts.keys() == {3, 4, 5}
    assert all(abs(count - MANY / 3) < 5 * (MANY * 2 / 9) ** 0.5 for count in counts.values())
    assert set(one) == {7}
    assert 1000 <= min(some) < 1010 < 1990 < max(some) < 2000
    assert len(set(every)) > MANY - 5
    assert min(every) < 2**32 // 500 < 2**32 - 2**32 // 500 < max(every)
    assert drawn(target("draws"), 100) == first[:100]
