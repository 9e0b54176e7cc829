# SPDX-License-Identifier: Apache-2.0
"""Which data segments `lose RATE of FLOW seed N` loses, and `reorder` delays: the reference of p4/*/loss.p4.

The draw of a flow id's n-th data segment is

    x0 = n;   x(i+1) = CRC32(x(i) + salt(i) mod 2^32),  i = 0, 1, 2;   lost if x3 < round(rate * 2^32)

CRC32: Ethernet's (IEEE 802.3, 3.2.9) over four bytes, most significant first.  The three salts are
derived from flow id and seed, of `reorder` others than of `lose`.  Two steps are not enough: carries must reach
every bit.

With `burst LENGTH` a chain of two states (E. N. Gilbert, "Capacity of a Burst-Noise Channel", 1960) has its own
probability of loss after a loss, 1 - 1/LENGTH; that after a segment that was not lost is such that RATE are lost.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from testctl_agent.spec.fate import Fate

_WORD = 2**32


@dataclass(frozen=True)
class Loss:
    """The switch's form of a rule: a draw up to `most` is a loss; after a loss, one below `stay`, if that is given."""

    most: int
    salts: tuple[int, int, int]
    stay: int | None = None


def loss(flow_id: int, rate: float, seed: int, burst: float = 0.0, label: str = "") -> Loss:
    """The rule of one flow id.

    burst: losses in a row on average, 0: each segment by itself; label: rules with another one draw other numbers.
    Raises ValueError when the rate is not in [2^-32, 1], no such bursts give it, or the seed is not in 64 bits.
    """
    from hashlib import blake2b  # brings OpenSSL, which a lab without losses does without

    stay = 1 - 1 / burst if burst else None
    begin = rate if stay is None else rate / (1 - rate) * (1 - stay) if rate < 1 else 2.0
    threshold = round(begin * _WORD) if 0 < begin <= 1 else 0
    if not threshold:
        raise ValueError("want a rate from 2^-32 to 1" + (f" that bursts of {burst} give" if burst else "")
                         + f"; got {rate}")  # fmt: skip
    if not 0 <= seed < 2**64:
        raise ValueError(f"want a seed from 0 to 2^64 - 1; got {seed}")
    of = flow_id.to_bytes(8, "big") + seed.to_bytes(8, "big") + label.encode()
    mixed = blake2b(of, digest_size=12).digest()
    a, b, c = (int.from_bytes(mixed[i : i + 4], "big") for i in (0, 4, 8))
    return Loss(threshold - 1, (a, b, c), None if stay is None else round(stay * _WORD))


def rule_of(fate: Fate, flow_id: int) -> Loss:
    """The rule of one flow id for a `lose` or `reorder` of a plan."""
    return loss(flow_id, fate.rate, fate.seed, fate.burst, "" if fate.action == "lose" else fate.action)


def draw(rule: Loss, ordinal: int) -> int:
    """A number of 32 bits for a data segment, counted from 1."""
    x = ordinal
    for salt in rule.salts:
        x = zlib.crc32(((x + salt) % _WORD).to_bytes(4, "big"))
    return x


def is_lost(rule: Loss, ordinal: int, after_loss: bool = False) -> bool:
    if after_loss and rule.stay is not None:
        return draw(rule, ordinal) < rule.stay
    return draw(rule, ordinal) <= rule.most


def lost(rule: Loss, count: int) -> Iterator[int]:
    """The ordinals of the first `count` segments that are lost, in order."""
    before = False
    for ordinal in range(1, count + 1):
        before = is_lost(rule, ordinal, before)
        if before:
            yield ordinal
