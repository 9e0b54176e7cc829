# SPDX-License-Identifier: Apache-2.0
"""One point for the page: its settings and its results; its recoveries and what switches did to its packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testctl.charts import Chart
from testctl.charts.latency import latency_distribution
from testctl.charts.over_time import Span, over_time, recovery_span
from testctl.charts.style import VIOLATION
from testctl.core.temporal import Answers
from testctl.core.units import show_time
from testctl.curves import Lane, Window, curves, lines_of
from testctl.metrics.recovery import flow_recoveries
from testctl.metrics.recovery.measure import Recovery
from testctl.records import Records
from testctl.report.fates import read_fates
from testctl.report.formulas import with_value
from testctl.report.metrics import metric_table
from testctl.report.programs import program_rows
from testctl.report.stalls import Stall
from testctl.report.violations import violation_list
from testctl.results import RunPoint

MAX_LISTED = 100
"""Recoveries in the list, the first ones."""

_MIN_PAD_NS = 1_000_000
_LONGEST_TEXT = 400
_ENTERED_BY = {"dupacks": "duplicate ACKs", "early": "fewer than 3 duplicate ACKs", "path_mtu": "ICMP"}
_EXITED_BY = {"ack": "ACK", "end": "–"}


def point_page(point: RunPoint) -> dict[str, Any]:
    """What its page says without its records."""
    return {
        "id": point.id,
        "verdict": point.verdict,
        "reason": point.reason,
        "digest": point.digest,
        "tuples": [[entity, param, with_value(point, entity, param, value)] for entity, param, value in point.tuples],
        "metrics": metric_table(point),
        "virtual": show_time(point.virtual_s * 1e9),
        "wall": show_time(point.wall_s * 1e9),
    }


def point_events(point: RunPoint, records: Records) -> dict[str, Any]:
    """What its page has besides figures: broken rules, recoveries, fates, programs, distribution of latency."""
    listed, fates, latency = recoveries(records), read_fates(point, records), latency_distribution(records)
    return {
        "recoveries": {"rows": [_row(recovery, span) for recovery, span in listed[:MAX_LISTED]], "in_all": len(listed)},
        "violations": violation_list(point, records),
        "fates": fates.to_json() if fates else None,
        "programs": [
            [switch, name, at, value] for switch, name, cells, _ in program_rows(point) for at, value in cells
        ],
        "latency": latency.to_json() if latency else None,
    }


def chart_of(
    records: Records,
    name: str,
    chosen: Sequence[Lane],
    window: Window,
    stalls: Sequence[Stall],
    answers: Answers,
    bin_ns: int = 0,
) -> Chart:
    """A figure with the stalls of what it shows shaded, and in a time-sequence figure the recoveries.

    answers: of the expectations over time; a line is where one is violated
    """
    spec = curves()[name].spec
    flow, conn = chosen[0]
    spans = [
        Span(stall.start_ns, stall.end_ns, stall.title)
        for stall in stalls
        if spec.stalls and (spec.each == "flow" or (stall.flow, stall.conn) == (flow, conn))
    ]
    if spec.shape == "packets":
        there = [recovery for recovery in flow_recoveries(records, flow) if recovery.conn == conn]
        ends = [recovery.exit_ns if recovery.exit_ns >= 0 else window.to_ns for recovery in there]
        spans += [
            recovery_span(recovery.entry_ns, end, recovery.fast) for recovery, end in zip(there, ends, strict=True)
        ]
    spans += [
        Span(at, at, str(answer.get("text", "")), VIOLATION)
        for flows in answers.values()
        for of, answer in flows.items()
        if (at := answer.get("time_ns")) is not None
        and (spec.each == "flow" or (of, answer.get("conn")) == (flow, conn))
    ]
    return over_time(records, name, chosen, window, bin_ns=bin_ns, singly=True, spans=spans)


def recoveries(records: Records) -> Sequence[tuple[Recovery, tuple[int, int]]]:
    """All of a point in order of time, each with what a figure of it shows."""
    ordered = sorted(
        (recovery for flow in records.flows for recovery in flow_recoveries(records, flow)),
        key=lambda recovery: recovery.entry_ns,
    )
    return [(recovery, _span(records, recovery)) for recovery in ordered]


def lane_text(lane: Lane) -> str:
    """A connection as addresses have it."""
    return f"{lane[0]}/{lane[1]}"


def _span(records: Records, recovery: Recovery) -> tuple[int, int]:
    """A recovery with as much again before and after it: at least the round trip of what was lost."""
    times = lines_of(records, "seq", (recovery.flow, recovery.conn))
    end = (
        recovery.exit_ns
        if recovery.exit_ns >= 0
        else max((int(line.time_ns[-1]) for line in times), default=recovery.entry_ns)
    )
    pad = max(end - recovery.entry_ns, _MIN_PAD_NS)
    return max(recovery.first_dup_ns - pad, 0), end + pad


def _row(recovery: Recovery, span: tuple[int, int]) -> dict[str, Any]:
    """A recovery of the list; cells are the columns of serve/static/lists.js."""
    excess, known = recovery.excess_window, recovery.measured
    cells = [
        f"{recovery.entry_ns / 1e9:.6f}",
        f"{recovery.flow} #{recovery.conn}" if recovery.conn else recovery.flow,
        _ENTERED_BY.get(recovery.entered_by, recovery.entered_by),
        _EXITED_BY.get(recovery.exited_by, recovery.exited_by),
        show_time(recovery.length_ns) if recovery.length_ns >= 0 else "–",
        -(-recovery.flight_bytes // recovery.mss) if known else "–",
        (recovery.sent if len(recovery.sent) <= _LONGEST_TEXT else recovery.sent[: _LONGEST_TEXT - 1] + "…")
        if known
        else "–",
        recovery.burst_max if known else "–",
        show_time(recovery.silence_ns) if known else "–",
        recovery.resent if known else "–",
        "–" if excess is None else f"{excess} ({recovery.window_source})",
        recovery.limit,
    ]
    return {
        "lane": lane_text((recovery.flow, recovery.conn)),
        "fast": recovery.fast,
        "entry_ns": recovery.entry_ns,
        "exit_ns": recovery.exit_ns if recovery.exit_ns >= 0 else span[1],
        "from": span[0],
        "to": span[1],
        "cells": cells,
    }
