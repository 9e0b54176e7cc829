# SPDX-License-Identifier: Apache-2.0
"""Recoveries as report.js reads them: time-sequence figures of the packets around them, and a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testctl.metrics.recovery.measure import Recovery
from testctl.records.schema import Bools, Ints
from testctl.report.style import show_time
from testctl.report.time_sequence import Bars, Line, TimeSequence

MAX_BARS = 3000
"""Bars and steps of one point's time-sequence figures, shared by its connections."""

MAX_VIEWS = 12
"""Recoveries that a figure has a button for."""

MAX_LISTED = 100

_MIN_PAD_NS = 1_000_000
_LONGEST_TEXT = 400


def recovery_payload(shown: Sequence[TimeSequence], most: int = MAX_BARS) -> dict[str, Any] | None:
    """The figures of connections that had a recovery, and the list of all recoveries; None without any."""
    some = [one for one in shown if one.recoveries]
    if not some:
        return None
    every = sorted((one for part in some for one in part.recoveries), key=lambda one: one.entry_ns)
    return {
        "figures": [_figure(one, most // len(some)) for one in some],
        "list": [_row(one) for one in every[:MAX_LISTED]],
        "left_out": max(len(every) - MAX_LISTED, 0),
    }


def _figure(shown: TimeSequence, most: int) -> dict[str, Any]:
    spans = [_span(shown, one) for one in shown.recoveries]
    shown_parts = (shown.data, shown.again, shown.sacks, shown.una, shown.allowed, shown.drops)
    parts = tuple(part.time_ns for part in shown_parts)
    kept = _within_budget(spans, parts, most)
    complete = sum(len(part) for part in parts) <= most
    begin = min((int(part[0]) for part in parts if len(part)), default=0)
    if complete:
        end = max(int(part[-1]) for part in parts if len(part))
        spans = [(max(begin - (end - begin) // 50, 0), end + (end - begin) // 50), *spans]
    return {
        "name": shown.name,
        "data": _bars(shown.data, kept, complete),
        "again": _bars(shown.again, kept, complete),
        "sacks": _bars(shown.sacks, kept, complete),
        "una": _steps(shown.una, kept, complete),
        "edge": _steps(shown.edge, kept, complete),
        "allowed": _steps(shown.allowed, kept, complete),
        "drops": _steps(shown.drops, kept, complete),
        "drops_say": shown.drops_say,
        "periods": [
            {"from": _s(one.entry_ns), "to": _s(one.exit_ns) if one.exit_ns >= 0 else None, "fast": one.fast}
            for one in shown.recoveries
        ],
        "views": [
            {"label": label, "from": _s(span[0]), "to": _s(span[1])}
            for label, span in zip(_labels(complete), spans, strict=False)
        ][: min(MAX_VIEWS, len(kept) + complete)],
        "drawn": len(shown.recoveries) if complete else len(kept),
        "recoveries": len(shown.recoveries),
    }


def _labels(complete: bool) -> list[str]:
    return [*(["all"] if complete else []), *(str(n) for n in range(1, MAX_VIEWS + 1))]


def _span(shown: TimeSequence, one: Recovery) -> tuple[int, int]:
    """A recovery with as much again before and after it: at least the round trip of what was lost."""
    last = int(shown.una.time_ns[-1]) if len(shown.una.time_ns) else one.entry_ns
    end = one.exit_ns if one.exit_ns >= 0 else last
    pad = max(end - one.entry_ns, _MIN_PAD_NS)
    return max(one.first_dup_ns - pad, 0), end + pad


def _within_budget(spans: Sequence[tuple[int, int]], parts: Sequence[Ints], most: int) -> list[tuple[int, int]]:
    """The first spans whose packets together are not more than `most`; always one."""
    found: list[tuple[int, int]] = []
    for low, high in spans:
        most -= sum(int(np.diff(np.searchsorted(part, [low, high]))[0]) for part in parts)
        if most < 0 and found:
            break
        found.append((low, high))
    return found


def _kept(time_ns: Ints, spans: Sequence[tuple[int, int]], complete: bool) -> Bools:
    kept = np.full(len(time_ns), complete)
    for low, high in spans:
        first, last = np.searchsorted(time_ns, [low, high])
        kept[first : min(last, first + MAX_BARS)] = True
    return kept


def _bars(bars: Bars, spans: Sequence[tuple[int, int]], complete: bool) -> dict[str, Any]:
    kept = _kept(bars.time_ns, spans, complete)
    time_ns, low, high = (column[kept] for column in bars)
    return {"x": _seconds(time_ns), "low": low.tolist(), "size": (high - low).tolist()}


def _steps(line: Line, spans: Sequence[tuple[int, int]], complete: bool) -> dict[str, Any]:
    kept = _kept(line.time_ns, spans, complete)
    return {"x": _seconds(line.time_ns[kept]), "y": line.level[kept].tolist()}


def _seconds(time_ns: Ints) -> list[float]:
    rounded: list[float] = np.round(time_ns / 1e9, 7).tolist()
    return rounded


def _s(time_ns: int) -> float:
    return round(time_ns / 1e9, 7)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _row(one: Recovery) -> list[str | int]:
    """at, flow, entered by, ended by, how long, FlightSize, sent, burst, silence, resent, cwnd - ssthresh, limit."""
    name = f"{one.flow} #{one.conn}" if one.conn else one.flow
    excess = one.excess_window
    known = one.measured
    return [
        f"{one.entry_ns / 1e9:.6f}",
        name,
        {"dupacks": "duplicate ACKs", "early": "fewer than 3 duplicate ACKs"}.get(one.entered_by, one.entered_by),
        {"ack": "ACK", "end": "–"}.get(one.exited_by, one.exited_by),
        show_time(one.length_ns) if one.length_ns >= 0 else "–",
        -(-one.flight_bytes // one.mss) if known else "–",
        _short(one.sent) if known else "–",
        one.burst_max if known else "–",
        show_time(one.silence_ns) if known else "–",
        one.resent if known else "–",
        "–" if excess is None else f"{excess} ({one.window_source})",
        one.limit,
    ]
