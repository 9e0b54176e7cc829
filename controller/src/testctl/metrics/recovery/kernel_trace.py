# SPDX-License-Identifier: Apache-2.0
"""TCP's internals as the kernel of a flow's sender traced them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.metrics.core.memo import once
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import TCP_EVENTS, Array, codes_of, numbers_of


def traced_events(records: Records, flow: str) -> pa.Table:
    """What the kernel of a flow's sender traced of it (schema TCP_EVENTS, source kernel); empty if it did not."""
    table = records.tcp_events
    if table is None:
        return TCP_EVENTS.empty_table()
    (flows, flow_names), (wheres, where_names) = codes_of(table, "flow"), codes_of(table, "where")
    sender = view(records, flow).sender
    if flow not in flow_names or sender not in where_names:
        return TCP_EVENTS.empty_table()
    own = (flows == flow_names.index(flow)) & (wheres == where_names.index(sender))
    return table.take(pa.array(np.flatnonzero(own)))


def traced_names(records: Records, flow: str) -> Array:
    """The `event` of each row of traced_events (of TCP_EVENT_NAMES)."""
    codes, names = codes_of(traced_events(records, flow), "event")
    return np.array(names or [""])[codes]


@once
def traced_columns(records: Records, flow: str) -> dict[str, Array]:
    """The numbers of traced_events, taken once."""
    table = traced_events(records, flow)
    names = [field.name for field in TCP_EVENTS if not pa.types.is_dictionary(field.type)]
    return {name: numbers_of(table, name) for name in names}
