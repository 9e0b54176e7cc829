# SPDX-License-Identifier: Apache-2.0
"""How long requests took, by their size.

From when a request came, by the plan's arrivals and not by when its application was ready for it, to when its last byte
was read.  The handshake of a connection that is opened for it counts.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.completions import completions, infos, summarise
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.records import Records

SPEC = MetricSpec(
    name="fct",
    help="completion times of a flow's requests (FCT), by size",
    needs="requests",
    values=(
        MetricInfo("requests_completed", "", "requests whose last byte was read"),
        MetricInfo(
            "request_rate",
            "requests/s",
            "completed requests a second, from when the first one came to the end of the last one",
            "higher",
        ),
        *infos("fct", "µs", "from arrival to the last byte read"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    found = completions(records, flow)
    took = found.took_ns / 1e3 if found is not None else np.empty(0)
    return {
        "requests_completed": len(took) if found is not None else NAN,
        "request_rate": _rate(records, flow),
        **summarise("fct", "µs", found, took),
    }


def _rate(records: Records, flow: str) -> float:
    found = completions(records, flow)
    if found is None or not len(found.end_ns):
        return NAN
    length_ns = int(found.end_ns.max()) - int((found.end_ns - found.took_ns).min())
    return len(found.end_ns) * 1e9 / length_ns
