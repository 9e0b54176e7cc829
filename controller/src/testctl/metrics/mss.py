# SPDX-License-Identifier: Apache-2.0
"""MSS: the largest payload of a data packet on the wire.

It is what the sender used, options and path MTU discovery included: 1448 of an MSS option of 1460 with time stamps.
"""

from __future__ import annotations

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="mss",
    help="the largest payload of a packet",
    needs="tcp_info",
    values=(
        MetricInfo("mss_min_bytes", "B", "least MSS of the sender by tcp_info samples; NaN without any"),
        MetricInfo("mss_max_bytes", "B", "largest MSS of the sender by tcp_info samples; NaN without any"),
        MetricInfo(
            "mss_wire_bytes",
            "B",
            "largest payload of a data packet that reached the receiver; of merged packets rounded up; NaN without any",
            needs="receiver",
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    mss = seen.info["snd_mss"] if seen.info else None
    return {
        "mss_min_bytes": int(mss.min()) if mss is not None else NAN,
        "mss_max_bytes": int(mss.max()) if mss is not None else NAN,
        "mss_wire_bytes": seen.arrived.largest or NAN,
    }
