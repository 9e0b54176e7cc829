# SPDX-License-Identifier: Apache-2.0
"""Queue depths seen by packets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from testctl_agent.spec import schedule
from testctl_agent.spec.units import Duration

from testctl.curves.core.spec import CurveSpec, Line
from testctl.metrics.core.passages import data_passages, passages
from testctl.metrics.core.queues import own_queue, under_way
from testctl.metrics.core.view import FlowView, view
from testctl.records.schema import Array, Ints

SPEC = CurveSpec(
    name="queue",
    value="bytes",
    binned="most",
    by=("place",),
    title="Queue of the switch",
    of="what each packet found waiting",
    kind="size",
    shape="line with gaps",
    there=lambda flow: any(len(way.rows) for way in (*passages(flow), *passages(flow, back=True))),
    zero=True,
    place=30,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns, place, bytes; the largest of each bin.

    place: own, in the sender's host; network, between the captures; or the switch port that data leaves by.
    """
    depths: dict[str, tuple[Ints, Array]] = {"own": own_queue(flow), "network": under_way(flow)}
    for passage in data_passages(flow):
        depths[passage.port] = passage.queued["time_ns"], passage.queued["queue_bytes"]
    parts = [(time_ns, np.full(len(time_ns), i, np.int8), size) for i, (time_ns, size) in enumerate(depths.values())]
    time_ns, places, amount = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = pa.DictionaryArray.from_arrays(places.astype(np.int8), list(depths))
    return pa.table({"time_ns": time_ns, "place": names, "bytes": amount})


def lines(flow: FlowView, conn: int) -> list[Line]:
    """A line for every switch port that data or ACKs pass; zero where the queue ran empty in between."""
    records = flow.records
    parts: dict[str, list[tuple[Ints, Array, Array]]] = {}
    for name in records.flows:
        seen = view(records, name)
        for passage in (*passages(seen), *passages(seen, back=True)):
            rows = passage.queued
            parts.setdefault(passage.port, []).append((rows["time_ns"], rows["queue_bytes"], rows["left_ns"]))
    shown = []
    for port, of_flows in parts.items():
        time_ns, depth, left_ns = (np.concatenate(column) for column in zip(*of_flows, strict=True))
        order = np.argsort(time_ns, kind="stable")
        steps = schedule.steps_of(records.point.settings.get(port, {}).get("delay"), Duration)
        shown.append(
            Line(port, *_with_empty(time_ns[order], depth[order].astype(np.int64), _done(left_ns[order], steps)))
        )
    return shown


def _done(left_ns: Ints, steps: Sequence[schedule.Step]) -> Ints:
    """Dequeue times of packets that left a port at these times: before its delay."""
    done = left_ns - (steps[0].value or 0)
    for step in steps[1:]:
        later = left_ns - (step.value or 0)
        done = np.where(later >= step.at_ns, later, done)
    return done


def _with_empty(time_ns: Ints, depth: Ints, done_ns: Ints) -> tuple[Ints, Ints]:
    """The depths, and a zero where the last packet was done before the next came; done_ns < 0: it was not queued."""
    latest = np.maximum.accumulate(done_ns)
    empty = latest[:-1][(latest[:-1] < time_ns[1:]) & (depth[1:] == 0)]
    at = np.concatenate([time_ns, empty])
    order = np.argsort(at, kind="stable")
    return at[order], np.concatenate([depth, np.zeros(len(empty), np.int64)])[order]
