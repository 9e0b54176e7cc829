# SPDX-License-Identifier: Apache-2.0
"""The distribution of one-way latency: of each flow the share of packets that took at most so long."""

from __future__ import annotations

import numpy as np

from testctl.charts.chart import Chart
from testctl.charts.style import LANES
from testctl.core.units import readable
from testctl.curves import flows_drawn, lines_of
from testctl.records import Records

QUANTILES = np.unique(np.concatenate([np.linspace(0, 0.99, 100), 1 - np.geomspace(0.01, 1e-5, 50), [1.0]]))
"""Dense in the tail."""


def latency_distribution(records: Records) -> Chart | None:
    """None where no packet was seen at both ends."""
    lines = [line for line in lines_of(records, "latency", None) if len(line)] if flows_drawn(records) else []
    if not lines:
        return None
    unit = readable("time", max(float(np.quantile(line.value, 0.99)) for line in lines))
    took = [np.round(np.quantile(line.value, QUANTILES) / unit.size, 3).tolist() for line in lines]
    names, order = [line.name for line in lines], list(records.flows)
    colours = [LANES[order.index(name) % len(LANES)] for name in names]
    axis_x, axis_y = {"title": f"one-way latency ({unit.name})"}, {"title": "share of packets", "format": ".0%"}
    spec = {
        "height": 260,
        "data": {"name": "latency"},
        "mark": {"type": "line", "interpolate": "step-after", "clip": True},
        "encoding": {
            "x": {"field": "took", "type": "quantitative", "axis": axis_x, "scale": {"zero": True}},
            "y": {"field": "share", "type": "quantitative", "axis": axis_y, "scale": {"domain": [0, 1]}},
            "color": {"field": "flow", "type": "nominal", "scale": {"domain": names, "range": colours},
                      "legend": {"title": None} if len(names) > 1 else None},
        },
    }  # fmt: skip
    data = {
        "took": [value for line in took for value in line],
        "share": np.round(QUANTILES, 6).tolist() * len(lines),
        "flow": [name for name in names for _ in QUANTILES],
    }
    high = ", ".join(
        f"{name} {line[int(np.searchsorted(QUANTILES, 0.99))]:g}" for name, line in zip(names, took, strict=True)
    )
    return Chart(
        spec, {"latency": data}, "Distribution of latency", "", f"99 % of packets within ({unit.name}): {high}"
    )
