# SPDX-License-Identifier: Apache-2.0
"""Drops: packets of a flow that switches dropped, and where and why, by their telemetry."""

from __future__ import annotations

from collections import Counter

import numpy as np

from testctl.metrics.core.passages import passages
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import DROPPED, FATES

_WHY = {
    "drops_by_fate": ("drop", "lose"),
    "drops_by_full_buffer": ("buffer_drop",),
    "drops_by_link": ("link_drop",),
    "drops_by_aqm": ("aqm_drop",),
    "drops_otherwise": ("other_drop",),
}

SPEC = MetricSpec(
    name="drops",
    help="packets that switches dropped, by telemetry",
    needs="telemetry",
    values=(
        MetricInfo("drops", "", "packets of the flow, both ways, that switches dropped", "lower"),
        MetricInfo("drops_of_data", "", "of these, packets with payload", "lower"),
        MetricInfo("drops_of_acks", "", "of these, packets without", "lower"),
        MetricInfo("drops_by_fate", "", "of these, as a fate of the plan asked", "lower"),
        MetricInfo("drops_by_full_buffer", "", "of these, because the port's buffer was full", "lower"),
        MetricInfo(
            "drops_by_link", "", "of these, because the port's link was down, or takes no packet so large", "lower"
        ),
        MetricInfo("drops_by_aqm", "", "of these, by the port's active queue management", "lower"),
        MetricInfo("drops_otherwise", "", "of these, because the switch had no port for them", "lower"),
        MetricInfo(
            "drops_where",
            "",
            'the ports and how many at each, such as "switch:receiver 4"; none without any',
            text=True,
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    ways = [*passages(seen), *passages(seen, back=True)]
    if not any(len(way.rows) for way in ways):
        return {info.name: NAN for info in SPEC.values}
    total: Counter[str] = Counter()
    places = []
    for way in ways:
        some, fate = way.fates
        of_data = way.rows["length"][some] > 0
        dropped = np.isin(fate, DROPPED)
        count = int(dropped.sum())
        total["drops"] += count
        total["drops_of_data"] += int((dropped & of_data).sum())
        for name, fates in _WHY.items():
            total[name] += int(np.isin(fate, [FATES.index(fate_name) for fate_name in fates]).sum())
        if count:
            places.append(f"{way.port} {count}")
    total["drops_of_acks"] = total["drops"] - total["drops_of_data"]
    return {**{info.name: total[info.name] for info in SPEC.values}, "drops_where": ", ".join(places) or "none"}
