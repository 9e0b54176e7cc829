# SPDX-License-Identifier: Apache-2.0
"""Open-loop traffic for queues that manage themselves, from seeds: packets at given nanoseconds.

Each mix gives (time in ns, bytes on the wire, flow, ECN field: 0 none, 1 ECT(1), 2 ECT(0)), times ascending, no two
of `restarts` the same.  The port is meant to send at RATE.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache

RATE = 10**7
FLOWS = 5
Packet = tuple[int, int, int, int]


def _ns(size: int) -> float:
    return size * 8 * 1e9 / RATE


def poisson(count: int) -> Iterator[Packet]:
    """A load that goes up and down between 0.7 and 1.3; packets of all sizes, half of them ECT."""
    rng = random.Random(1)
    now, load = 0.0, 1.0
    for number in range(count):
        if number % 2000 == 0:
            load = rng.choice((0.7, 0.95, 1.05, 1.3))
        size = rng.choice((64, 576, rng.randint(64, 1514), 1514))
        now += rng.expovariate(load / _ns(804))
        yield int(now), size, rng.randrange(FLOWS), rng.choice((0, 2))


def bursts(count: int) -> Iterator[Packet]:
    """Bursts of 20 to 120 packets of 1514 bytes at ten times the rate, all ECT, at a mean load of 0.9."""
    rng = random.Random(2)
    now, left, flow = 0.0, 0, 0
    for _ in range(count):
        if not left:
            left, flow = rng.randint(20, 120), rng.randrange(FLOWS)
            now += left * _ns(1514) * rng.uniform(0.4, 1.62)
        left -= 1
        now += _ns(1514) / 10
        yield int(now), 1514, flow, 2


def overload(count: int) -> Iterator[Packet]:
    """Five flows at a constant rate, without ECN, by turns a third more and a tenth less than the port can send."""
    rng = random.Random(3)
    now, load = 0.0, 1.0
    for number in range(count):
        if number % 5000 == 0:
            load = 1.33 if number % 10_000 == 0 else 0.9
        now += _ns(1000) / load + rng.random() * 1000
        yield int(now), 1000, number % FLOWS, 0


def restarts(count: int) -> Iterator[Packet]:
    """Overload until up to a quarter of a second waits, silence, and single packets and pairs, some of them while the
    last one is still being sent."""
    rng = random.Random(4)
    now, burst, alone, load = 0.0, 0, 0, 1.0
    for _ in range(count):
        if burst + alone == 0:
            load, alone = rng.uniform(1.3, 4), rng.choice((0, 10, 40))
            burst = int(rng.uniform(0.4, 1) * 200 / (1 - 1 / load))
            now += _ns(1514) * rng.choice((0.001, 0.5, 1, 10))
        if burst:
            burst -= 1
            now += _ns(1514) / load
            if not burst:
                now += _ns(1514) * rng.choice((80, 160, 240)) + rng.choice((0, 0, 10**7, 10**9, 2 * 10**9))
        else:
            alone -= 1
            now += rng.choice((1000, _ns(64), _ns(1514) * 0.999, _ns(1514), 10**6, 10**7, 10**8, 5 * 10**8))
        flow = rng.randrange(FLOWS)
        yield int(now), 1514 if burst else rng.choice((64, 1514)), flow, 2 * (flow % 2)


def sparse(count: int) -> Iterator[Packet]:
    """Four flows that send a third more than the port can, without ECN, and one with a packet among 40 of theirs."""
    rng = random.Random(5)
    now = 0.0
    for number in range(count):
        now += _ns(1000) / 1.33 + rng.random() * 1000
        yield int(now), 1000, FLOWS - 1 if number % 40 == 39 else number % (FLOWS - 1), 0


MIXES: Mapping[str, Callable[[int], Iterator[Packet]]] = {
    "poisson": poisson,
    "bursts": bursts,
    "overload": overload,
    "restarts": restarts,
}
SPARSE = "sparse"
L4S = "l4s "
"""Before the name of a mix: the same, with another ECN field for each flow."""
SCALABLE, ECT0, NOT_ECT = (0, 1), (2, 3), (4,)
"""The flows of such a mix that are ECT(1), ECT(0) and neither."""


@cache
def of_mix(name: str, count: int) -> list[Packet]:
    made = sparse if name == SPARSE else MIXES[name.removeprefix(L4S)]
    found = list(made(count))
    if not name.startswith(L4S):
        return found
    return [(at, size, flow, 1 if flow in SCALABLE else 2 if flow in ECT0 else 0) for at, size, flow, _ in found]
