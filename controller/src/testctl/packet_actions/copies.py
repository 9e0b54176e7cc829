# SPDX-License-Identifier: Apache-2.0
"""Merges the telemetry of packets that left a switch twice: each copy has a row with the packet's ordinal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.metrics.core.view import Rows
from testctl.records.schema import FATES, Array, Bools, Ints

_DUPLICATE = FATES.index("duplicate")


@dataclass(frozen=True)
class Packets:
    """Packets in the order of their rows.

    first  whether a row is the first one of its packet
    rows   how many each packet has
    fate   of each packet: that of its rows; if copies differ the one other than duplicate; none for a
           duplicate with one row
    """

    first: Bools
    rows: Ints
    fate: Array


def packets_of(stream: Rows) -> Packets:
    """The packets of one stream: rows of the same ordinal are one."""
    ordinals, fate = stream["ordinal"], stream["fate"].copy()
    if len(np.unique(ordinals)) == len(ordinals):
        fate[fate == _DUPLICATE] = 0
        return Packets(np.ones(len(ordinals), np.bool_), np.ones(len(ordinals), np.int64), fate)
    _, at, which, rows = np.unique(ordinals, return_index=True, return_inverse=True, return_counts=True)
    of_packet = fate[at]
    others = np.flatnonzero(fate != _DUPLICATE)
    of_packet[which[others]] = fate[others]
    of_packet[(rows == 1) & (of_packet == _DUPLICATE)] = 0
    order = np.argsort(at)
    first = np.zeros(len(ordinals), np.bool_)
    first[at] = True
    return Packets(first, rows[order], of_packet[order])
