# SPDX-License-Identifier: Apache-2.0
"""What the records of a capture show: metrics, stalls, violations; without what the capture can't tell.

A capture that lacks bytes which the receiver acknowledged has dropped packets, or others took another way: what it
lacks looks like loss.  Nothing that counts packets is then known of the flow, and no rule is decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testctl.execution.assess import Assessment
from testctl.metrics import Number, analyse
from testctl.records import Records
from testctl.records.schema import ACK, FIN, Array, Ints, codes_of, numbers_of
from testctl.rules import violations_of
from testctl.rules.core.registry import rules

NAN = float("nan")
_UNKNOWN = ("failure", "failure_time_s", "capacity_bps", "random_loss_rate")
"""Metrics that a plan's point has without any instrument."""
_RATES = ("rtt_", "throughput_bps", "goodput_", "stability_", "connection_stability_", "active_s", "mss_wire_bytes")
_SMALL = 0.001
"""Share of the bytes that may lack for a rate to be the same within its precision."""
_AXIS = 42


def lacking(records: Records) -> dict[str, tuple[int, int]]:
    """Flow -> (bytes that were acknowledged and are not in its capture, bytes that are), of flows that lack any; of two
    captures the one that lacks most."""
    found: dict[str, tuple[int, int]] = {}
    table = records.packets
    (flow, flows), (where, _) = codes_of(table, "flow"), codes_of(table, "where")
    group = flow.astype(np.int64) << 17 | where.astype(np.int64) << 1 | numbers_of(table, "direction")
    order = np.argsort(group, kind="stable")
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    rows = (
        dict(zip(group[order[np.append(0, cuts)]].tolist(), np.split(order, cuts), strict=True)) if len(order) else {}
    )
    for key in rows:
        lacks, there = _unseen(records, rows[key], rows.get(key ^ 1, np.empty(0, np.int64)))
        if lacks > found.get(flows[key >> 17], (0, 0))[0]:
            found[flows[key >> 17]] = (lacks, there)
    return found


def _unseen(records: Records, data: Ints, acks: Ints) -> tuple[int, int]:
    """(bytes of the one direction that the other acknowledges and that are not there, bytes that are)."""
    flags = records.values("flags", acks)
    acks = acks[(flags & ACK) > 0]
    if not len(acks):
        return 0, 0
    conn, acked = records.values("conn", acks).astype(np.int64), records.values("ack", acks)
    most = np.full(int(conn.max()) + 1, -1, np.int64)
    np.maximum.at(most, conn, acked)
    conn = records.values("conn", data).astype(np.int64)
    start = records.values("seq", data) + (conn << _AXIS)
    taken = records.values("length", data) + ((records.values("flags", data) & FIN) > 0)
    end = start + taken
    known = np.flatnonzero(most > 0)
    begins, ends = known << _AXIS, (known << _AXIS) + most[known]
    return _gaps(start[taken > 0], end[taken > 0], begins, ends)


def _gaps(start: Array, end: Array, begins: Array, ends: Array) -> tuple[int, int]:
    """(length of what ranges [begins, ends), which are apart and ascending, have outside of others, and inside)."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end) if len(end) else end
    fresh = np.maximum(end - np.maximum(start, np.concatenate([[-(1 << 62)], reach[:-1]])), 0) if len(end) else end
    starts = end - fresh
    edges = np.concatenate([[0], np.cumsum(fresh)])

    def below(value: Array) -> Array:
        at = np.searchsorted(starts, value, side="left")
        last = np.maximum(at - 1, 0)
        over = np.where(at > 0, np.maximum(reach[last] - value, 0), 0) if len(reach) else 0
        return edges[at] - np.minimum(over, fresh[last] if len(fresh) else 0)

    there = int((below(ends) - below(begins)).sum())
    return int((ends - begins).sum()) - there, there


def assess_capture(records: Records) -> tuple[Records, Assessment]:
    """The records with notes and flows that no rule judges added, and their assessment."""
    lacks = lacking(records)
    notes = [
        f"{flow}: the capture lacks {lost} bytes that were acknowledged, which looks like loss: no rule is "
        "judged, and nothing that counts packets is known"
        for flow, (lost, _) in lacks.items()
    ]
    unjudged = dict(records.outcome.unjudged) | dict.fromkeys(lacks, "the capture lacks bytes that were acknowledged")
    outcome = replace(records.outcome, unjudged=unjudged)
    records = replace(records, outcome=outcome, notes=[*records.notes, *notes[:10]], memo={})
    violations = violations_of(records)  # before the metrics hold columns too
    analysis = analyse(records)
    metrics = {flow: _known(flow, values, lacks) for flow, values in analysis.metrics.items()}
    stalls = analysis.stalls
    if lacks and stalls.num_rows:
        stalls = stalls.filter(pc.invert(pc.is_in(stalls["flow"].cast(pa.string()), pa.array(list(lacks)))))
    verdict, reason = verdict_of(violations)
    return records, Assessment(verdict, reason, metrics, stalls, [], violations)


def _known(flow: str, values: Mapping[str, Number], lacks: Mapping[str, tuple[int, int]]) -> dict[str, Number]:
    known = {name: NAN if name in _UNKNOWN else value for name, value in values.items()}
    if flow not in lacks:
        return known
    lost, there = lacks[flow]
    kept = _RATES if lost <= _SMALL * (lost + there) else ()
    return {name: value if name.startswith(kept) else NAN for name, value in known.items()} if kept else dict.fromkeys(
        known, NAN
    )  # fmt: skip


def verdict_of(violations: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """(verdict, reason) by what the rules say."""
    counts: Counter[str] = Counter()
    for entry in violations:
        if rules()[entry["rule"]].spec.level == "MUST":
            counts[entry["rule"]] += int(entry["count"])
    if not counts:
        return "pass", ""
    listed = ", ".join(f"{rule} {count}" for rule, count in counts.most_common())
    return "fail", f"rules of TCP were broken: {listed}"
