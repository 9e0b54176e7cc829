# SPDX-License-Identifier: Apache-2.0
"""The throughput of each connection of a flow; throughput.py has the flow's."""

from __future__ import annotations

import numpy as np

from testctl.curves.core.spec import Line
from testctl.metrics.core.view import view
from testctl.records import Records


def lines_of_connections(records: Records, flow: str) -> list[Line]:
    """Of each connection that sent something: the bytes on the wire of each packet at the receiver."""
    rows = view(records, flow).at_sink
    connections = {int(conn): rows.of_conn(int(conn)) for conn in np.unique(rows["conn"])}
    return [Line(f"{flow} {conn}", packets["time_ns"], packets["wire_bytes"]) for conn, packets in connections.items()]
