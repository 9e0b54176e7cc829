# SPDX-License-Identifier: Apache-2.0
"""Records of a point that has packets alone, for tests that look at none of their columns or at few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records import PACKETS, TCP_INFO, Records

_PACKET = dict.fromkeys(PACKETS.names, 0) | {"where": "sender", "flow": "bulk", "retrans": False, "out": True}


def few_packets(
    point: Mapping[str, Any], packets: Sequence[Mapping[str, Any]] = (), outcome: Mapping[str, Any] | None = None
) -> Records:
    """packets: by what distinguishes them from others."""
    table = pa.Table.from_pylist([_PACKET | dict(values) for values in packets], PACKETS)
    told = Outcome.from_json(outcome) if outcome else Outcome()
    return Records(table, TCP_INFO.empty_table(), {}, told, PointSpec.from_json(point))
