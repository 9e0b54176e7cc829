# SPDX-License-Identifier: Apache-2.0
"""Stability of each connection: how much its own throughput differs from bin to bin.

A flow can have several connections.  While one of them stalls the others take its share, so that their sum, which
`stability` looks at, is steady.  Bins are as in `stability`, the same for all connections.  NaN when a connection
has nothing in them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from testctl.metrics.core.bins import flow_spreads, spreads
from testctl.metrics.core.spec import NAN, WIDTHS, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records

_WIDTHS = {name: ns for name, ns in WIDTHS.items() if ns >= WIDTHS["1ms"]}
"""Below, a bin of one of many connections holds hardly a packet."""

SPEC = MetricSpec(
    name="connection_stability",
    help="coefficient of variation of the binned throughput of each connection",
    needs="receiver",
    values=tuple(
        info
        for width in _WIDTHS
        for info in (
            MetricInfo(
                f"connection_stability_mean_cv_{width}",
                "",
                f"standard deviation / mean over bins of {width}, mean of the flow's connections",
                "lower",
            ),
            MetricInfo(
                f"connection_stability_worst_cv_{width}",
                "",
                f"standard deviation / mean over bins of {width}, of the connection where it is greatest",
                "lower",
            ),
        )
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    values: dict[str, Number] = {}
    conns = seen.into.conns
    each = [_cvs(flow_spreads(seen))] if len(conns) == 1 else [_cvs(_spreads(seen, conn)) for conn in conns]
    for width in _WIDTHS:
        cvs = [cv[width] for cv in each]
        values[f"connection_stability_mean_cv_{width}"] = float(np.mean(cvs)) if cvs else NAN
        values[f"connection_stability_worst_cv_{width}"] = float(np.max(cvs)) if cvs else NAN
    return values


def _spreads(seen: FlowView, conn: int) -> dict[str, tuple[float, float]]:
    rows = seen.into.of_conn(conn)
    return spreads(rows["time_ns"], rows["wire_bytes"], *seen.steady_ns, _WIDTHS)


def _cvs(spread: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """By width, standard deviation / mean of a connection's bins."""
    return {width: spread[width][0] / spread[width][1] for width in _WIDTHS}
