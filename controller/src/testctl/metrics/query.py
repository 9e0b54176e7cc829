# SPDX-License-Identifier: Apache-2.0
"""How long queries took: requests that come at one time; the last one counts (incast of many to one).

They are the requests of a flow's `fanout`, or of all flows that have the same `draw`.
"""

from __future__ import annotations

import numpy as np
from testctl_agent.spec import workload

from testctl.metrics.core.completions import TAILS, requests_of
from testctl.metrics.core.percentiles import rank_of
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.records import Records
from testctl.records.schema import Ints

SPEC = MetricSpec(
    name="query",
    help="completion times of queries: requests that come at one time, by `fanout` or by flows of the same `draw`",
    needs="requests",
    values=(
        MetricInfo("queries_completed", "", "queries all of whose requests ended"),
        *(
            MetricInfo(f"query_{part}_us", "µs", f"from arrival to the last byte of the last request: {part}", "lower")
            for part in ("mean", *TAILS)
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    took_us = _took_ns(records, flow) / 1e3
    known = np.sort(took_us)
    ranks = {tail: rank_of(share, len(known)) for tail, share in TAILS.items()}
    return {
        "queries_completed": len(known) if _together(records, flow) else NAN,
        "query_mean_us": float(known.mean()) if len(known) else NAN,
        **{f"query_{tail}_us": float(known[rank]) if len(known) else NAN for tail, rank in ranks.items()},
    }


def _together(records: Records, flow: str) -> list[str]:
    """The flows whose requests are parts of the same queries; none where each request is alone."""
    timed = records.point.flow(flow)
    if timed is None or not timed.asks:
        return []
    draw = timed.options.get("draw")
    same = [other.name for other in records.point.flows if other.asks and draw and other.options.get("draw") == draw]
    return same or ([flow] if workload.fanout(timed.options) > 1 else [])


def _took_ns(records: Records, flow: str) -> Ints:
    """Of each query that ended.  Flows whose queries are not as many have none together."""
    ends, dues = [], []
    for name in _together(records, flow):
        columns, timed = requests_of(records, name), records.point.flow(name)
        if columns is not None and timed is not None:
            wide = workload.fanout(timed.options)
            ends.append(columns["end_ns"].reshape(-1, wide))
            dues.append(columns["due_ns"].reshape(-1, wide))
    if not ends or len({len(end) for end in ends}) > 1:
        return np.empty(0, np.int64)
    end, due = np.concatenate(ends, axis=1), np.concatenate(dues, axis=1)
    whole = (end >= 0).all(axis=1) & (due >= 0).all(axis=1)
    return np.asarray((end.max(axis=1) - due.min(axis=1))[whole])
