# SPDX-License-Identifier: Apache-2.0
"""Answers conditions over the trace for each flow of a point, with the reason: when, which packet, wanted, got."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from testctl.core.temporal import INSTRUMENTS, SIGNALS, Answer, Limit, Moment, Temporal
from testctl.core.units import exact_metric, show_time
from testctl.metrics.core.available import of_flow
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records
from testctl.temporal import samples
from testctl.temporal.samples import Samples
from testctl.temporal.windows import CUT, HELD, NO_RTT, NO_VALUE, NOTHING, VIOLATED, Steps, Trace, Windows, evaluate

_UNDECIDED = {
    CUT: "the trace ends before the window does",
    NO_VALUE: "{signal} has no value before the event",
    NO_RTT: "no round-trip time is known at the event",
    NOTHING: "{signal} has no value to judge in the window",
}


def answers_of(records: Records, conditions: Iterable[Temporal]) -> dict[str, dict[str, Answer]]:
    """The answer to every condition, by its key and by the flows of the plan."""
    return {c.key: {flow: _of_flow(view(records, flow), c) for flow in records.plans_flows} for c in conditions}


def _of_flow(flow: FlowView, condition: Temporal) -> Answer:
    """fail before pass before invalid, over all connections; the first violation gives the reason."""
    there = of_flow(flow.records, flow.name)
    for word, source in condition.sources.items():
        if not there & set(source.needs):
            wanted = " or ".join(INSTRUMENTS[name] for name in source.needs)
            return {"verdict": "invalid", "text": f"{word} of {flow.name} is not known: want {wanted}"}
    read = _Reader(flow, condition)
    evaluated = [(conn, evaluate(condition, trace)) for conn, trace in read.traces()]
    violated = [
        (int(windows.anchor[number]), conn, number, windows)
        for conn, windows in evaluated
        for number in np.flatnonzero(windows.state == VIOLATED)[:1].tolist()
    ]
    if violated:
        _, conn, number, windows = min(violated, key=lambda item: item[:2])
        return read.violation(conn, number, windows)
    states = np.concatenate([np.empty(0, np.int64), *(windows.state for _, windows in evaluated)])
    if (states == HELD).any():
        return {"verdict": "pass"}
    if not len(states):
        moment = condition.after or condition.before
        why = f"the event {moment.event} never came" if moment else "it has no connection"
    else:
        often = f" at each of {len(states)} occurrences" if len(states) > 1 else ""
        why = f"can't be decided{often}: {_UNDECIDED[int(states[0])].format(signal=condition.signal)}"
    return {"verdict": "invalid", "text": f"{condition.signal} of {flow.name}: {why}"}


class _Reader:
    """Reads what a condition needs of a flow, once for all connections."""

    def __init__(self, flow: FlowView, condition: Temporal) -> None:
        self._flow, self._condition = flow, condition
        self._spans = samples.begins_and_ends(flow)
        names = {condition.signal, *(name for name, _ in condition.during)}
        self._signals = {name: samples.signal(flow, name) for name in names}
        events = {moment.event for moment in condition.moments if moment.event}
        self._events = {name: samples.event(flow, name) for name in events}

    def traces(self) -> Iterable[tuple[int, Trace]]:
        units = {length.unit for length in self._condition.lengths}
        rtt = samples.smoothed_rtt(self._flow) if "rtt" in units else None
        acks = samples.acks(self._flow) if "acks" in units else None
        for conn, (begin_ns, end_ns) in self._spans.items():
            more: dict[str, Any] = {"rtt": _steps(rtt, conn)} if rtt else {}
            more |= {"acks": acks.time_ns[acks.of_conn(conn)]} if acks else {}
            signals = {name: _steps(of, conn) for name, of in self._signals.items()}
            events = {name: of.time_ns[of.of_conn(conn)] for name, of in self._events.items()}
            yield conn, Trace(begin_ns, end_ns, signals, events, **more)

    def violation(self, conn: int, number: int, windows: Windows) -> Answer:
        condition = self._condition
        place = int(windows.place[number]) if condition.always else windows.nearest(number)
        of = self._signals[condition.signal]
        sample = int(of.of_conn(conn)[windows.values.row[place]])
        begin, got = int(windows.begin[number]), float(windows.values.value[place])
        held_ns, since_ns = int(windows.values.time_ns[place]), int(of.time_ns[sample])
        low, high = float(windows.low[number]), float(windows.high[number])
        who = f"{condition.signal} of {self._flow.name}" + (f", connection {conn}" if len(self._spans) > 1 else "")
        when = _seconds(max(held_ns, begin)) + (f", since {_seconds(since_ns)}" if since_ns < begin else "")
        nearest = "" if condition.always else "nearest, "
        return {
            "verdict": "fail",
            "text": f"{who}: want {'always' if condition.always else 'eventually'} "
            f"{_wanted(condition, low, high)} {self._window(conn, number, windows)}; "
            f"got {_shown(condition.signal, got)} ({nearest}at {when}: {of.describe(sample)})",
            "gap": (low - got) / (abs(low) or 1.0) if got < low else (got - high) / (abs(high) or 1.0),
            "time_ns": max(held_ns, begin),
            "conn": conn,
        }

    def _window(self, conn: int, number: int, windows: Windows) -> str:
        """The window for reading: "within 3 rtt (60 ms) after loss at 0.066718 s, data packet 50 with seq 70952 …"."""
        condition = self._condition
        texts = []
        length_ns = int(min(windows.end[number], 2**62)) - int(windows.begin[number])
        if condition.within:
            length = "" if condition.within.unit == "ns" else f"{condition.within} ("
            texts.append(f"within {length}{show_time(length_ns)}{')' if length else ''}")
        if condition.after:
            offset = condition.after.offset
            later = windows.begin[number] - windows.anchor[number]
            texts.append(f"from {show_time(float(later))} after" if offset else "after")
            texts.append(self._moment(condition.after, conn, number, windows))
        if condition.until:
            until = condition.until
            texts.append(f"until {until.event or _seconds(until.time_ns)}")
        if condition.before:
            texts.append(f"before {self._moment(condition.before, conn, number, windows)}")
        texts += [f"while {name} is {' or '.join(_shown(name, v) for v in among)}" for name, among in condition.during]
        return " ".join(texts) or "in the whole connection"

    def _moment(self, moment: Moment, conn: int, number: int, windows: Windows) -> str:
        if not moment.event:
            return _seconds(moment.time_ns)
        of = self._events[moment.event]
        event = of.describe(int(of.of_conn(conn)[number]))
        ordinal = f" {number + 1}" if not moment.first else ""
        return f"{moment}{ordinal} at {_seconds(int(windows.anchor[number]))} ({event})".replace(
            f" + {moment.offset}", ""
        )


def _steps(of: Samples, conn: int) -> Steps:
    own = of.of_conn(conn)
    return Steps.of(of.time_ns[own], of.value[own].astype(np.float64))


def _wanted(condition: Temporal, low: float, high: float) -> str:
    """The bounds as numbers, and what they are relative to."""
    if condition.equals is not None:
        return _bound(condition, condition.equals, low)
    parts = []
    if condition.least is not None:
        parts.append(f"at least {_bound(condition, condition.least, low)}")
    if condition.most is not None:
        parts.append(f"at most {_bound(condition, condition.most, high)}")
    return " and ".join(parts)


def _bound(condition: Temporal, limit: Limit, value: float) -> str:
    shown = _shown(condition.signal, value)
    if not limit.before or not limit.value:
        return shown
    return f"{shown} ({limit.value:g} times {_shown(condition.signal, value / limit.value)} before)"


def _shown(signal: str, value: float) -> str:
    source = SIGNALS[signal]
    if source.names:
        return source.names[int(value)] if 0 <= value < len(source.names) else f"{value:g}"
    return exact_metric(source.suffix, value)


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.6f} s"
