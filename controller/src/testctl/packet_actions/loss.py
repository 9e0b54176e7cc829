# SPDX-License-Identifier: Apache-2.0
"""The reference of losses (testctl_agent/spec/loss.py), vectorised."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from testctl_agent.spec.loss import Loss

from testctl.records.schema import Array, Bools

_POLYNOMIAL = 0xEDB88320  # of IEEE 802.3, 3.2.9, lowest bit first
Words = npt.NDArray[np.uint32]


@cache
def _table() -> Words:
    """CRC32 of every byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table.astype(np.uint32)


def crc32(blocks: Words) -> Words:
    """CRC32 over the four bytes of each word, most significant first."""
    table = _table()
    crc = np.full(blocks.shape, 0xFFFFFFFF, np.uint32)
    for shift in (24, 16, 8, 0):
        crc = table[(crc ^ blocks >> np.uint32(shift)) & np.uint32(0xFF)] ^ crc >> np.uint32(8)
    return np.asarray(~crc, np.uint32)


def are_lost(rule: Loss, ordinals: Array) -> Bools:
    """Mask of the segments that the rule selects, by ordinals (from 1; all, in order, for a rule with bursts)."""
    x = ordinals.astype(np.uint32)
    for salt in rule.salts:
        x = crc32(x + np.uint32(salt))
    chosen = np.asarray(x <= np.uint32(rule.most))
    return chosen if rule.stay is None else _in_bursts(chosen, np.asarray(x < np.uint32(rule.stay)))


def _in_bursts(begin: Bools, go_on: Bools) -> Bools:
    """Mask of lost segments: a burst may begin after a segment that arrived, and continue after a lost one."""
    lost = np.zeros(len(begin), np.bool_)
    ends = np.append(np.flatnonzero(~go_on), len(begin))
    at = 0
    for first in np.flatnonzero(begin):
        if first < at:
            continue
        end = int(ends[np.searchsorted(ends, first + 1)])
        lost[first:end] = True
        at = end + 1
    return lost
