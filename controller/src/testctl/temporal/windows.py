# SPDX-License-Identifier: Apache-2.0
"""Evaluates a condition over the trace of one connection: arrays in, arrays out.

A signal is a step function: a value holds from its sample up to the next one.  A window is [begin, end], in whole ns,
both included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from testctl.core.temporal import Length, Limit, Moment, Temporal
from testctl.records.schema import Array, Bools, Ints

HELD, VIOLATED, CUT, NO_VALUE, NO_RTT, NOTHING = range(6)
"""Results of a window: the condition holds; it does not; or it can't be decided, because the trace ends before the
window does, the signal has no value before the event, no round-trip time is known then, or there is no value in it."""

_NEVER = 2**62
"""The end of a window without one."""


@dataclass(frozen=True)
class Steps:
    """A step function: value[i] holds from time_ns[i] up to time_ns[i + 1].  row: the sample of each value."""

    time_ns: Ints
    value: Array
    row: Ints

    @classmethod
    def of(cls, time_ns: Array, value: Array) -> Steps:
        """Of samples, in order of time; of several at one time the last one holds.  NaN: not known, left out."""
        row = np.flatnonzero(~np.isnan(value))
        times = time_ns[row]
        row = row[np.append(times[1:] != times[:-1], True)] if len(row) else row
        return cls(time_ns[row].astype(np.int64), value[row].astype(np.float64), row)

    def at(self, time_ns: Ints) -> Array:
        """The values at these times; NaN before the first sample."""
        place = np.searchsorted(self.time_ns, time_ns, "right") - 1
        return np.append(self.value, np.nan)[place]  # of place -1 the NaN


@dataclass(frozen=True)
class Trace:
    """A connection's signals and events; times in ns, ascending.

    begin_ns, end_ns  of its first and its last record
    signals, events  that the condition names
    rtt      the smoothed round-trip time in ns; acks: when ACKs came
    """

    begin_ns: int
    end_ns: int
    signals: Mapping[str, Steps]
    events: Mapping[str, Ints]
    rtt: Steps = field(default_factory=lambda: Steps.of(np.empty(0), np.empty(0)))
    acks: Ints = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Windows:
    """The windows of a condition, and what comes of each.

    anchor, begin, end  ns: the event, and the window; an end beyond the trace's cuts the window
    low, high  the bounds; those relative to the value before the event are made absolute
    state      HELD, VIOLATED, …
    place      in `values`, of the first value that meets `eventually`, or violates `always`; -1: there is none
    values     the signal, and `counts`, which of its values are judged: those during which `during` holds
    """

    anchor: Ints
    begin: Ints
    end: Ints
    low: Array
    high: Array
    state: Ints
    place: Ints
    values: Steps
    counts: Bools

    def nearest(self, number: int) -> int:
        """The place of the value of a window that is nearest to its bounds; it has one that counts."""
        first, last = (int(places[0]) for places in _span(self.values, self.begin[[number]], self.end[[number]]))
        value = self.values.value[first:last]
        away = np.maximum(self.low[number] - value, value - self.high[number])
        return first + int(np.argmin(np.where(self.counts[first:last], away, np.inf)))


def evaluate(condition: Temporal, trace: Trace) -> Windows:
    """Every window of a condition in a trace, in order of time; none where its event does not come."""
    moment = condition.after or condition.before or Moment(time_ns=trace.begin_ns)
    anchor = _times(moment, trace)
    rtt = trace.rtt.at(anchor)
    begin, end = np.full(len(anchor), trace.begin_ns), np.full(len(anchor), _NEVER)
    if condition.after is not None:
        begin = _later(anchor, condition.after.offset, rtt, trace)
    if condition.before is not None:
        end = anchor - 1
    if condition.within is not None:
        end = np.minimum(end, _later(begin, condition.within, rtt, trace))
    if condition.until is not None:
        until = _times(condition.until, trace)
        following = np.searchsorted(until, begin, "right") if condition.until.event else np.zeros(len(begin), np.int64)
        end = np.minimum(end, np.append(until, _NEVER)[following] - 1)
    values, counts = _counted(condition, trace)
    first, last = _span(values, begin, np.minimum(end, trace.end_ns))
    before = trace.signals[condition.signal].at(anchor - 1)
    low, high = _limits(condition, before)
    place = _first(values.value, counts, (first, last), (low, high), inside=not condition.always)
    state = np.where((place >= 0) != condition.always, HELD, VIOLATED)
    state[(place < 0) & (end > trace.end_ns) & (end < _NEVER - 1)] = CUT
    counted = np.append(0, np.cumsum(counts))
    state[counted[last] == counted[first]] = NOTHING
    state[begin > trace.end_ns] = CUT
    if any(limit.before for limit in condition.limits.values()):
        state[np.isnan(before)] = NO_VALUE
    if "rtt" in (length.unit for length in condition.lengths):
        state[np.isnan(rtt)] = NO_RTT
    return Windows(anchor, begin, end, low, high, state, place, values, counts)


def _times(moment: Moment, trace: Trace) -> Ints:
    if not moment.event:
        return np.array([moment.time_ns], np.int64)
    return trace.events[moment.event][: 1 if moment.first else None]


def _later(base: Ints, length: Length | None, rtt: Array, trace: Trace) -> Ints:
    """The times a length after `base`; the N-th ACK after it is beyond the trace's end where there are fewer."""
    if length is None:
        return base
    if length.unit == "acks":
        place = np.searchsorted(trace.acks, base, "right") + int(length.number) - 1
        return np.append(trace.acks, trace.end_ns + 1)[np.minimum(place, len(trace.acks))]
    ns = np.rint(np.nan_to_num(rtt) * length.number) if length.unit == "rtt" else length.number
    return np.asarray(base + np.asarray(ns, np.int64))


def _limits(condition: Temporal, before: Array) -> tuple[Array, Array]:
    """(low, high) of each window."""

    def of(limit: Limit | None, none: float) -> Array:
        if limit is None:
            return np.full(len(before), none)
        return np.nan_to_num(before) * limit.value if limit.before else np.full(len(before), limit.value)

    return of(condition.least or condition.equals, -np.inf), of(condition.most or condition.equals, np.inf)


def _counted(condition: Temporal, trace: Trace) -> tuple[Steps, Bools]:
    """The signal, with a value wherever one of `during` changes too, and which of its values count."""
    signal = trace.signals[condition.signal]
    if not condition.during:
        return signal, np.ones(len(signal.value), np.bool_)
    others = [(trace.signals[name], among) for name, among in condition.during]
    times = np.unique(np.concatenate([signal.time_ns, *(other.time_ns for other, _ in others)]))
    place = np.searchsorted(signal.time_ns, times, "right") - 1
    times, place = times[place >= 0], place[place >= 0]
    counts = np.ones(len(times), np.bool_)
    for other, among in others:
        counts &= np.isin(other.at(times), among)
    return Steps(times, signal.value[place], signal.row[place]), counts


def _span(values: Steps, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """(first, last + 1) of the values that hold in each window; equal where there are none."""
    first = np.maximum(np.searchsorted(values.time_ns, begin, "right") - 1, 0)
    return first, np.where(end < begin, first, np.maximum(np.searchsorted(values.time_ns, end, "right"), first))


def _first(value: Array, counts: Bools, spans: tuple[Ints, Ints], limits: tuple[Array, Array], *, inside: bool) -> Ints:
    """The place of the first value of each span that is inside the limits, or outside; -1 where there is none.

    Spans of the same limits are searched together.
    """
    first, last = spans
    place = np.full(len(first), -1)
    bounds, group = np.unique(np.stack(limits), axis=1, return_inverse=True)
    for number, (low, high) in enumerate(bounds.T):
        own = np.flatnonzero(group.reshape(-1) == number)
        start, stop = int(first[own].min()), int(last[own].max())
        part = value[start:stop]
        within = (part >= low) & (part <= high)
        hits = np.append(np.flatnonzero(counts[start:stop] & (within == inside)) + start, len(value))
        nearest = hits[np.searchsorted(hits, first[own])]
        place[own] = np.where(nearest < last[own], nearest, -1)
    return place
