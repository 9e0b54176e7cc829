# SPDX-License-Identifier: Apache-2.0
"""A sender's packets with the kernel's trace of it, written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from testctl.records.schema import SENDER_COLUMNS, TCP_EVENT_NAMES, TCP_EVENTS, TCP_INFO, TCP_STATES, names_column

from controller.tests.rules.conversation import HELLO, found

FIRST = HELLO + "10000 a > A 0:1000 ack 0\n"
SENT = "10000 send open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 8 delivered 1\n"


def burst(time_us: int, first: int, count: int) -> str:
    """Segments of 1000 bytes, at once."""
    return "".join(f"{time_us} a > A {n}000:{n + 1}000 ack 0\n" for n in range(first, first + count))


def events(text: str, host: str = "a", flow: str = "f") -> pa.Table:
    """TIME_US EVENT STATE una N nxt N cwnd N ssthresh N pipe N prior N delivered N srtt US limited N rate BPS: a line
    each; limited is a place in TCP_LIMITS."""
    rows = [line.split() for line in text.strip().splitlines() if line.strip()]
    values = [dict(zip(row[3::2], map(int, row[4::2]), strict=True)) for row in rows]
    columns: dict[str, Any] = {
        "time_ns": [int(row[0]) * 1000 for row in rows],
        "conn": [0] * len(rows),
        "srtt_us": [value.get("srtt", 10_000) for value in values],
        "state": [TCP_STATES.index(row[2]) for row in rows],
        **dict.fromkeys(SENDER_COLUMNS, [-1] * len(rows)),
        "limited_by": [value.get("limited", -1) for value in values],
        "pacing_rate_bps": [value.get("rate", -1) for value in values],
    }
    names = {"una": "snd_una", "nxt": "snd_nxt", "prior": "prior_pipe"}
    for name in ("una", "nxt", "cwnd", "ssthresh", "pipe", "prior", "delivered"):
        columns[names.get(name, name)] = [value.get(name, 0) for value in values]
    for name, texts in (("where", [host]), ("flow", [flow]), ("source", ["kernel"])):
        columns[name] = names_column(np.zeros(len(rows), np.int64), texts)
    columns["event"] = names_column(np.array([TCP_EVENT_NAMES.index(row[1]) for row in rows]), list(TCP_EVENT_NAMES))
    return pa.table(
        [
            column if isinstance(column := columns[field.name], pa.Array) else pa.array(column, field.type)
            for field in TCP_EVENTS
        ],
        schema=TCP_EVENTS,
    )


def sample(**values: int) -> pa.Table:
    """A sample of tcp_info of host a, all other values 0."""
    columns = {name: pa.array([values.get(name, 0)], pa.int64()) for name in TCP_INFO.names}
    columns |= {"where": names_column(np.zeros(1, np.int64), ["a"]), "flow": names_column(np.zeros(1, np.int64), ["f"])}
    columns["conn"] = pa.array([0], pa.int16())
    return pa.table(columns, schema=TCP_INFO)


def violations(rule: str, text: str, *, trace: str = "", cc: str = "reno", **settings: Any) -> int:
    result = found(rule, text, settings={"a": {"cc": cc, **settings}}, events=events(trace) if trace else None)
    assert not result.undecided
    return result.count
