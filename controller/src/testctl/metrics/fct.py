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
    done = completions(records, flow)
    took, rate = np.empty(0), NAN
    if done is not None:
        took = done.took_ns / 1e3
        if len(done.end_ns):
            length_ns = int(done.end_ns.max()) - int((done.end_ns - done.took_ns).min())
            rate = len(done.end_ns) * 1e9 / length_ns
    return {
        "requests_completed": len(took) if done is not None else NAN,
        "request_rate": rate,
        **summarise("fct", "µs", done, took),
    }
