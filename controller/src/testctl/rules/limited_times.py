# SPDX-License-Identifier: Apache-2.0
"""The time for which its send buffer limits a sender passes only where it does."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import TCP_LIMITS
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import Events, samples

_NEVER = np.iinfo(np.int64).max

SPEC = RuleSpec(
    name="limited-times",
    must="TCP counts no time as limited by its send buffer before that ever limited it.",
    source="RFC 4898, 4; Linux, tcp_chrono_start()",
    level="Linux",
    needs=("start", "order", "tcp_events"),
    quote="Stalled by insufficient send buffer",
    linux="Judged are samples of tcp_info (sndbuf_limited): nothing is left to send, and an application waits for "
    "space in the buffer, tcp_cwnd_validate().",
)


def check(trace: Trace) -> Found:
    events, taken = Events(trace), samples(trace, "sndbuf_limited")
    limited = np.flatnonzero(events["limited_by"] == TCP_LIMITS.index("send_buffer"))
    conns, places = np.unique(events["conn"][limited], return_index=True)
    first = dict(zip(conns.tolist(), events["time_ns"][limited[places]].tolist(), strict=True))
    since = np.array([first.get(conn, _NEVER) for conn in taken["conn"].tolist()], np.int64)
    wrong = taken["time_ns"] <= since
    counted = trace.sparse(taken["row"][wrong], taken["sndbuf_limited"][wrong])
    return where(counted > 0, lambda row: f"counts {counted[row]} us as limited by the send buffer, which it was not")
