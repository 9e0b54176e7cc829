# SPDX-License-Identifier: Apache-2.0
"""The connections of a capture as a list, the most unhappy first: stalls, rules broken, packets sent again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np

from testctl.analyse.point import Side
from testctl.analyse.run import Chosen
from testctl.core.units import show_metric, show_rate, show_time
from testctl.core.words import counted
from testctl.results import RunPoint
from testctl.rules import rules

SHOWN = 10
WIDTH = 80
_PAUSE = "application"
"""The cause of a stall in which the application had nothing to send."""
_LEVELS = {"MUST": "a MUST of an RFC", "SHOULD": "a SHOULD", "Linux": "what Linux does"}
"""The levels of rules, in words."""


@dataclass(frozen=True)
class Listed:
    """A flow: by its packets as they passed the capture (of two files the first), and by the metrics of its point.

    up, down   payload bytes of the client, of the server; again, zero_windows, resets, syns: packets of both
    reordered  packets that another one overtook before the capture
    rtt_ms     of data and ACKs at the sender, else of the handshake; None: not known
    stalled_s  time in stalls but for the application's pauses; None: not known; causes: cause -> seconds in its stalls
    lost       packets lost between two captures; None: not known
    rules      rule -> times that it was broken, whatever its level; unjudged: why none is judged
    """

    name: str
    connections: int
    start_s: float
    duration_s: float
    packets: int
    up: int
    down: int
    again: int
    reordered: int
    zero_windows: int
    resets: int
    syns: int
    rtt_ms: float | None
    stalled_s: float | None = None
    causes: Mapping[str, float] = field(default_factory=dict)
    timeouts: float | None = None
    lost: float | None = None
    latency_ms: float | None = None
    rules: Mapping[str, int] = field(default_factory=dict)
    unjudged: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def trouble(self) -> tuple[float, ...]:
        """What the list is ordered by."""
        seen = self.again + self.zero_windows + self.resets + self.syns - self.connections
        return (self.stalled_s or 0.0, float(sum(self.rules.values())), float(seen), float(self.up + self.down))


def listed(chosen: Chosen, point: RunPoint | None = None) -> list[Listed]:
    """All flows, the most unhappy first; point: its metrics are added to their packets' counts."""
    side = chosen.sides[0]
    base_ns = min(one.first_ns for one in chosen.sides)
    stalls = _stalls(point) if point is not None else {}
    made = []
    for number, (flow, members) in enumerate(zip(chosen.flows, side.members, strict=True)):
        some, client = side.scanned.connections[members], side.client[members]
        sent = np.max([_sent(one, number) for one in chosen.sides], axis=0)  # the sender's own file has all of it
        rows = np.arange(len(some))
        start, end = int(some["first_ns"].min()), int(some["last_ns"].max())
        entry = Listed(
            name=flow.name,
            connections=len(some),
            start_s=(start - side.clock.offset_ns - base_ns) / 1e9,
            duration_s=(end - start) / 1e9,
            packets=int(some["packets"].sum()),
            up=int(sent[0]),
            down=int(sent[1]),
            rtt_ms=_handshake_ms(some),
            again=int(sent[2]),
            reordered=int(some["reordered"].sum()),
            zero_windows=int(some["zero_windows"].sum()),
            resets=int(some["resets"].sum()),
            syns=int(some["syns"][rows, client].sum()),
        )
        made.append(entry if point is None else _with_point(entry, point, stalls.get(flow.name, {})))
    return sorted(made, key=lambda entry: entry.trouble, reverse=True)


def _sent(side: Side, number: int) -> tuple[int, int, int]:
    """Payload of the client, of the server, and packets that were sent again, of a flow as a file has it."""
    members = side.members[number]
    some, client, rows = side.scanned.connections[members], side.client[members], np.arange(len(members))
    up, down = some["bytes"][rows, client].sum(), some["bytes"][rows, 1 - client].sum()
    return int(up), int(down), int(some["again"].sum())


def _handshake_ms(some: np.ndarray[Any, Any]) -> float | None:
    """From the first SYN to the ACK of the answer, where nothing left twice: a round trip wherever it was captured."""
    once = some[(some["syn_ns"] >= 0) & (some["ack_ns"] >= 0) & (some["syns"] == 1).all(axis=1)]
    return float(np.median(once["ack_ns"] - once["syn_ns"])) / 1e6 if len(once) else None


def _stalls(point: RunPoint) -> dict[str, dict[str, float]]:
    """Flow -> cause -> seconds."""
    seconds: dict[str, dict[str, float]] = {}
    table = point.stalls(["flow", "cause", "length_ns"])
    for row in table.to_pylist() if table is not None else ():
        of_flow = seconds.setdefault(row["flow"], {})
        of_flow[row["cause"]] = of_flow.get(row["cause"], 0.0) + row["length_ns"] / 1e9
    return seconds


def _with_point(entry: Listed, point: RunPoint, stalls: Mapping[str, float]) -> Listed:
    values = point.metrics.get(entry.name, {})

    def number(name: str) -> float | None:
        value = values.get(name)
        return float(value) if isinstance(value, int | float) else None

    rtt_us, latency_us = number("rtt_p50_us"), number("latency_p50_us")
    rules: dict[str, int] = {}
    for violation in point.violations:
        if violation["flow"] == entry.name:
            rules[violation["rule"]] = rules.get(violation["rule"], 0) + int(violation["count"])
    more = {
        "rtt_ms": entry.rtt_ms if rtt_us is None else rtt_us / 1e3,
        "stalled_s": None if number("stall_time_s") is None else sum(s for c, s in stalls.items() if c != _PAUSE),
        "causes": dict(sorted(stalls.items(), key=lambda stall: -stall[1])),
        "timeouts": number("retransmission_timeouts"),
        "lost": number("packets_lost"),
        "latency_ms": None if latency_us is None else latency_us / 1e3,
        "rules": rules,
        "unjudged": str(point.outcome.get("unjudged", {}).get(entry.name, "")),
    }
    return Listed(**(vars(entry) | more))


def lines(entries: Sequence[Listed], shown: int = SHOWN) -> list[str]:
    """The list for a terminal."""
    made = []
    for entry in entries[:shown]:
        made.append(entry.name)
        for text in (_size(entry), *_troubles(entry)):
            made += wrap(text, WIDTH, initial_indent=4 * " ", subsequent_indent=6 * " ", break_on_hyphens=False)
    if more := len(entries) - shown:
        made += [f"… and {more} more flow{'s' if more > 1 else ''}"] if more > 0 else []
    return made


def _size(entry: Listed) -> str:
    rate = (entry.up + entry.down) * 8 / entry.duration_s if entry.duration_s else 0.0
    parts = [
        counted(entry.connections, "connection") if entry.connections > 1 else "",
        f"{show_metric('_bytes', entry.up)} up, {show_metric('_bytes', entry.down)} down in "
        f"{show_time(entry.duration_s * 1e9)}",
        f"({show_rate(rate)})" if rate else "",
        f"RTT {show_time(entry.rtt_ms * 1e6)}" if entry.rtt_ms is not None else "",
        f"one way {show_time(entry.latency_ms * 1e6)}" if entry.latency_ms is not None else "",
    ]
    return ", ".join(filter(None, parts)).replace(", (", " (")


def _troubles(entry: Listed) -> list[str]:
    causes = ", ".join(
        f"{cause} {show_time(seconds * 1e9)}" for cause, seconds in entry.causes.items() if cause != _PAUSE
    )
    counts = [
        (entry.again, "packet sent again", "packets sent again"),
        (entry.reordered, "packet out of order", "packets out of order"),
        (entry.timeouts or 0, "timeout", "timeouts"),
        (entry.lost or 0, "packet lost between the captures", "packets lost between the captures"),
        (max(entry.syns - entry.connections, 0), "SYN again", "SYNs again"),
        (entry.zero_windows, "zero window", "zero windows"),
        (entry.resets, "reset", "resets"),
    ]
    happened = ", ".join(f"{int(count)} {one if count == 1 else many}" for count, one, many in counts if count)
    of_level: dict[str, list[str]] = {}
    for rule, count in entry.rules.items():
        of_level.setdefault(rules()[rule].spec.level, []).append(f"{rule} {count}")
    broken = [f"breaks {_LEVELS[level]}: {', '.join(of_level[level])}" for level in _LEVELS if level in of_level]
    stalled = f"stalled {show_time(entry.stalled_s * 1e9)}" if entry.stalled_s else ""
    return list(
        filter(
            None,
            [f"{stalled} ({causes})" if stalled and causes else stalled, happened, *broken],
        )
    )
