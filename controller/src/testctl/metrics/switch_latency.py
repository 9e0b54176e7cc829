# SPDX-License-Identifier: Apache-2.0
"""Switch latency: from a data packet's arrival at a switch to its departure, the port's delay included.

By telemetry, over every passage of a packet through a switch; it has the switch's own clock for both times.
The latency between the hosts' captures, of all switches of the way together, is metric latency.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.passages import data_passages, residence
from testctl.metrics.core.percentiles import infos, summarise
from testctl.metrics.core.spec import MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

_TAILS = ("p50", "p99", "p999")

SPEC = MetricSpec(
    name="switch_latency",
    help="time that data packets spend in a switch",
    needs="telemetry",
    values=infos("switch_latency", "arrival at a switch to departure, of data packets", _TAILS),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    spent = [residence(passage)[1] for passage in data_passages(seen)]
    together = spent[0] if len(spent) == 1 else np.concatenate([np.empty(0, np.int64), *spent])
    return summarise("switch_latency", together, _TAILS, own=True)
