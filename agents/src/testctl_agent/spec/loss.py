# SPDX-License-Identifier: Apache-2.0
"""Which data segments a rule `lose RATE of FLOW seed N` loses: the reference of p4/*/loss.p4.

The draw of a flow id's n-th data segment is

    x0 = n;   x(i+1) = CRC32(x(i) + salt(i) mod 2^32),  i = 0, 1, 2;   lost if x3 < round(rate * 2^32)

CRC32 is that of Ethernet (IEEE 802.3, 3.2.9) over four bytes, most significant first.  The three salts are
derived from flow id and seed.  Two steps are not enough: carries must reach every bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = 2**32


@dataclass(frozen=True)
class Loss:
    """The switch's form of a rule: a draw up to `most` is a loss."""

    most: int
    salts: tuple[int, int, int]


def loss(flow_id: int, rate: float, seed: int) -> Loss:
    """The rule of one flow id.  Raises ValueError when the rate is not in [2^-32, 1], or the seed not in 64 bits."""
    from hashlib import blake2b  # brings OpenSSL, which a lab without losses does without

    threshold = round(rate * _WORD) if 0 < rate <= 1 else 0
    if not threshold:
        raise ValueError(f"want a rate from 2^-32 to 1; got {rate}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"want a seed from 0 to 2^64 - 1; got {seed}")
    mixed = blake2b(flow_id.to_bytes(8, "big") + seed.to_bytes(8, "big"), digest_size=12).digest()
    a, b, c = (int.from_bytes(mixed[i : i + 4], "big") for i in (0, 4, 8))
    return Loss(threshold - 1, (a, b, c))


def draw(rule: Loss, ordinal: int) -> int:
    """A number of 32 bits for a data segment, counted from 1."""
    x = ordinal
    for salt in rule.salts:
        x = zlib.crc32(((x + salt) % _WORD).to_bytes(4, "big"))
    return x


def is_lost(rule: Loss, ordinal: int) -> bool:
    return draw(rule, ordinal) <= rule.most


def lost(rule: Loss, count: int) -> Iterator[int]:
    """The ordinals of the first `count` segments that are lost, in order."""
    return (ordinal for ordinal in range(1, count + 1) if is_lost(rule, ordinal))
