# SPDX-License-Identifier: Apache-2.0
"""A sender's variables over time: by its kernel's trace where there is one, else by its capture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from testctl.curves import Lane
from testctl.metrics.core.memo import once
from testctl.metrics.recovery import tcp_events, traced_events
from testctl.records import Records
from testctl.records.schema import Array, Ints, numbers_of


@dataclass(frozen=True)
class Internals:
    """Events of a connection, in order of time; pipe in packets; pipe, srtt_us and state as in records.TCP_EVENTS.

    source: "kernel" or "capture"
    """

    source: str
    time_ns: Ints
    pipe: Ints
    srtt_us: Ints
    state: Array

    @classmethod
    def of(cls, records: Records, lane: Lane) -> Internals:
        """Without any event where the sender was neither traced nor captured."""
        table, source = _events(records, lane[0])
        own = np.flatnonzero(numbers_of(table, "conn") == lane[1])
        names = ("time_ns", "pipe", "srtt_us", "state")
        columns = {name: numbers_of(table, name)[own] for name in names}
        return cls(source, **columns)

    def states(self) -> Iterator[tuple[int, int, int]]:
        """(from, to, index of TCP_STATES) of each time in one state; times in which it is not known are left out."""
        last = np.append(self.time_ns[1:] != self.time_ns[:-1], True) if len(self.time_ns) else np.empty(0, np.bool_)
        time_ns, state = self.time_ns[last], self.state[last].astype(np.int64)
        begins = np.flatnonzero(np.diff(state, prepend=-2))
        starts = time_ns[begins].tolist()
        for start, end, code in zip(starts, [*starts[1:], *time_ns[-1:].tolist()], state[begins].tolist(), strict=True):
            if code >= 0:
                yield start, end, code


@once
def _events(records: Records, flow: str) -> tuple[pa.Table, str]:
    """The events of all of a flow's connections, made once."""
    traced = traced_events(records, flow)
    return (traced, "kernel") if traced.num_rows else (tcp_events(records, flow), "capture")
