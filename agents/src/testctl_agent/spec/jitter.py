# SPDX-License-Identifier: Apache-2.0
"""Jitter of a link: a random delay of each packet in addition to the link's own, from a distribution with a seed.

    jitter = "none" | distribution "seed" NUMBER [", in order"]
    distribution = "uniform" MOST | "normal" MEAN DEVIATION | "exponential" MEAN

A normal delay below 0 is 0.  A distribution is a table of its quantiles, between which a draw is interpolated in whole
numbers.  The n-th packet that the port sends, from 0, draws SplitMix64's n-th number (Steele, Lea, Flood, OOPSLA 2014):
its highest 10 bits are the place in the table, the next 32 the fraction.  "in order": a packet does not arrive before
one that the port sent before it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from testctl_agent.spec.units import Duration

NONE = "none"
PLACES = 1024
MOST_NS = 10**9
_WORD = 2**64
_FORM = re.compile(r"(uniform|normal|exponential)((?: [^ ,]+){1,2}) seed ([0-9]{1,19})(, ?in order)?")
WANT = "jitter such as 'uniform 5ms seed 1', 'normal 5ms 1ms seed 1, in order' or 'exponential 2ms seed 1', or none"


@dataclass(frozen=True)
class Jitter:
    """amounts in ns: the most, the mean, or mean and deviation."""

    distribution: str
    amounts: tuple[int, ...]
    seed: int
    in_order: bool

    def __str__(self) -> str:
        amounts = " ".join(str(Duration(amount)) for amount in self.amounts)
        return f"{self.distribution} {amounts} seed {self.seed}{', in order' if self.in_order else ''}"


def parse(text: str) -> Jitter | None:
    """None: there is none.  Raises ValueError "want …; got …"."""
    normalized = " ".join(text.split())
    if normalized == NONE:
        return None
    match = _FORM.fullmatch(normalized)
    if match is None:
        raise ValueError(f"want {WANT}; got {text[:80]!r}")
    amounts = tuple(int(Duration.parse(word)) for word in match[2].split())
    if len(amounts) != (2 if match[1] == "normal" else 1):
        raise ValueError(f"want {WANT}; got {text[:80]!r}")
    if not all(1 <= amount <= MOST_NS for amount in amounts):
        raise ValueError(f"want times from 1ns to {Duration(MOST_NS)}; got {text[:80]!r}")
    if int(match[3]) >= 2**63:
        raise ValueError(f"want a seed below 2^63; got {match[3]}")
    return Jitter(match[1], amounts, int(match[3]), bool(match[4]))


def canonical(text: str) -> str:
    return str(parse(text) or NONE)


def quantiles(jitter: Jitter) -> tuple[int, ...]:
    """PLACES + 1 of them, in ns, ascending."""
    if jitter.distribution == "uniform":
        return tuple(jitter.amounts[0] * i // PLACES for i in range(PLACES + 1))
    shares = [(i + 0.5) / (PLACES + 1) for i in range(PLACES + 1)]
    if jitter.distribution == "exponential":
        return tuple(round(-jitter.amounts[0] * math.log1p(-share)) for share in shares)
    from statistics import NormalDist  # which imports a dozen modules, and few points need it

    normal = NormalDist(*jitter.amounts)
    return tuple(max(round(normal.inv_cdf(share)), 0) for share in shares)


def draw(jitter: Jitter, table: tuple[int, ...], n: int) -> int:
    """The delay in ns of the n-th packet, from 0; `table`: its quantiles."""
    x = (jitter.seed + (n + 1) * 0x9E3779B97F4A7C15) % _WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % _WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % _WORD
    x ^= x >> 31
    place, fraction = x >> 54, x >> 22 & 0xFFFFFFFF
    return table[place] + ((table[place + 1] - table[place]) * fraction >> 32)
