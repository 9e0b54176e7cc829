# SPDX-License-Identifier: Apache-2.0
"""Round-trip time: data packet to the ACK that covers it, when the ACK comes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.spec import CurveSpec
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import FlowView

SPEC = CurveSpec(
    name="rtt",
    value="rtt_ns",
    binned="mean",
    title="Round-trip time",
    of="data packet to its ACK",
    kind="time",
    shape="line with gaps",
    each="connection",
    there=lambda flow: bool(len(flow.out) and len(flow.acks_in)),
    zero=True,
    log=True,
    place=60,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns (of the ACK), rtt_ns, conn, in order of departure; of a bin rtt_us and rtt_us_max."""
    samples = round_trips(flow)
    return pa.table(samples._replace(conn=samples.conn.astype(np.int64))._asdict())
