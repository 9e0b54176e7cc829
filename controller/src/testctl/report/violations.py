# SPDX-License-Identifier: Apache-2.0
"""What broke a rule of TCP at a point, for its page and the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from testctl.core.units import show_time
from testctl.core.words import counted
from testctl.records import Records
from testctl.results import RunPoint
from testctl.rules import rules

MAX_LISTED = 100
"""Violations in the list, the first ones."""

_LEAST_PAD_NS = 1_000_000


def violation_list(point: RunPoint, records: Records) -> dict[str, Any]:
    """{"rows": [{"lane", "from", "to", "cells", "must"}], "in_all"}, in order of time.

    from, to: what a figure shows of it; cells: the columns of serve/static/lists.js
    """
    listed = [(entry, one) for entry in point.violations for one in entry["first"]]
    listed.sort(key=lambda pair: (pair[1]["time_ns"], pair[0]["rule"]))
    count = records.packets.num_rows
    rows = []
    for entry, one in listed[:MAX_LISTED]:
        packets = np.unique([row for row in one["packets"] if 0 <= row < count]).astype(np.int64)
        times = records.values("time_ns", packets) if len(packets) else np.array([one["time_ns"]])
        pad = max(int(times.max() - times.min()), _LEAST_PAD_NS)
        rule = entry["rule"]
        must = known.spec.must if (known := rules().get(rule)) else ""
        cells = [f"{one['time_ns'] / 1e9:.6f}", rule, _source(rule), entry["flow"], entry["host"], one["text"]]
        window = {"from": max(int(times.min()) - pad, 0), "to": int(times.max()) + pad}
        packets_text = ", ".join(map(str, one["packets"]))
        rows.append({"lane": f"{entry['flow']}/{one['conn']}", **window, "must": must, "cells": [*cells, packets_text]})
    return {"rows": rows, "in_all": sum(entry["count"] for entry in point.violations)}


def violation_lines(point: RunPoint) -> Iterator[str]:
    """A sentence for each rule, flow and end."""
    for entry in point.violations:
        for one in entry["first"][:1]:
            yield (
                f"{entry['rule']} ({_source(entry['rule'])}), {counted(entry['count'], 'time')}: at "
                f"{show_time(one['time_ns'])} {entry['host']} {one['text']} (flow {entry['flow']}, packets "
                f"{', '.join(map(str, one['packets']))})"
            )


def _source(rule: str) -> str:
    known = rules().get(rule)
    return f"{known.spec.source}, {known.spec.level}" if known else ""
