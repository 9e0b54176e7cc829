# SPDX-License-Identifier: Apache-2.0
"""Expectations over the trace: what a plan demands of a signal over time, as data; docs/plans.md has the semantics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from testctl_agent.spec.units import Duration

STATES = ("open", "disorder", "cwr", "recovery", "loss")
"""Words of the signal `state`, by the kernel's numbers."""

LIMITS = ("nothing", "application", "send_buffer", "receiver_window", "cwnd", "pacing")
"""Words of the signal `limited_by`, likewise."""

PHASES = ("startup", "drain", "probe_bw", "probe_rtt")
"""Words of the signal `phase`."""

INSTRUMENTS = {
    "tcp_events": "tcp_events at the sender",
    "tcp_info": "tcp_info at the sender",
    "sender": "capture at the sender",
    "receiver": "capture at the receiver",
    "telemetry": "telemetry at every switch on the way",
}
"""Instruments that give signals and events, and what a plan switches on for them."""


@dataclass(frozen=True)
class Source:
    """A signal or an event, and the instruments that give it; any of them is enough.

    unit   of a signal, as metrics have it; "": packets, or a number
    names  of a signal whose values have names: their numbers are the places
    """

    help: str
    needs: tuple[str, ...]
    unit: str = ""
    names: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """The end of a metric's name that has the same unit (testctl.core.units)."""
        return {"bit/s": "_bps", "B": "_bytes", "us": "_us"}.get(self.unit, "")


WIDTHS_NS = {"1ms": 10**6, "10ms": 10**7, "100ms": 10**8, "1s": 10**9}
"""Widths of the bins of the signals throughput_WIDTH."""

SIGNALS: Mapping[str, Source] = {
    "cwnd": Source("congestion window, packets", ("tcp_events",)),
    "ssthresh": Source("slow-start threshold, packets; 2147483647 before the first loss", ("tcp_events",)),
    "pipe": Source("packets in flight, as the kernel counts them", ("tcp_events",)),
    "srtt": Source("smoothed round-trip time", ("tcp_events",), "us"),
    "delivered": Source("packets delivered since the connection began", ("tcp_events",)),
    "state": Source("state of congestion control, a word", ("tcp_events",), names=STATES),
    "limited_by": Source("what keeps the sender from sending more, a word", ("tcp_events",), names=LIMITS),
    "phase": Source("phase of BBR, a word", ("tcp_events",), names=PHASES),
    "pacing_gain": Source("pacing gain of BBR", ("tcp_events",)),
    "cwnd_gain": Source("gain of BBR's congestion window", ("tcp_events",)),
    "dctcp_alpha": Source("DCTCP's estimate of the share of marked packets, 0 to 1", ("tcp_events",)),
    "pacing_rate": Source("pacing rate", ("tcp_events", "tcp_info"), "bit/s"),
    "delivery_rate": Source("delivery rate", ("tcp_events", "tcp_info"), "bit/s"),
    "min_rtt": Source("least round-trip time, at each sample of tcp_info", ("tcp_info",), "us"),
    "rtt": Source("round-trip time of a data packet, when its ACK comes", ("sender",), "us"),
    "queue": Source("what a data packet finds waiting at the port with the longest queue", ("telemetry",), "B"),
    **{
        f"throughput_{width}": Source(f"bytes on the wire at the receiver in the last bin of {width}, as a rate",
                                      ("receiver",), "bit/s")
        for width in WIDTHS_NS
    },
}  # fmt: skip

EVENTS: Mapping[str, Source] = {
    "loss": Source("a switch drops a data packet", ("telemetry",)),
    "mark": Source("a switch marks a data packet (CE)", ("telemetry",)),
    "retransmit": Source("data leaves the sender again", ("tcp_events", "sender")),
    "timeout": Source("the retransmission timer runs out", ("tcp_events",)),
    "recovery": Source("the state becomes recovery", ("tcp_events",)),
    "open": Source("the state becomes open again", ("tcp_events",)),
    "data": Source("the first data packet leaves the sender", ("tcp_events", "sender")),
}

LENGTHS: Mapping[str, Source] = {
    "rtt": Source("smoothed round-trip times", ("tcp_events", "tcp_info")),
    "acks": Source("ACKs that come to the sender", ("tcp_events", "sender")),
}
"""Units of a length besides time."""


@dataclass(frozen=True)
class Length:
    """How long: ns, or a number of LENGTHS."""

    number: float
    unit: Literal["ns", "rtt", "acks"] = "ns"

    def __str__(self) -> str:
        return f"{self.number:g} {self.unit}" if self.unit != "ns" else str(Duration(int(self.number)))


@dataclass(frozen=True)
class Moment:
    """Each occurrence of an event, or the first one; without an event a time from the traffic's begin.

    offset  how much later
    """

    event: str = ""
    first: bool = False
    time_ns: int = 0
    offset: Length | None = None

    def __str__(self) -> str:
        base = f"{'first ' if self.first else ''}{self.event}" if self.event else str(Duration(self.time_ns))
        return f"{base} + {self.offset}" if self.offset else base


@dataclass(frozen=True)
class Limit:
    """A bound in the signal's unit; with `before` a multiple of its value just before the event of `after`."""

    value: float
    before: bool = False

    def __str__(self) -> str:
        return f"{float(self.value)!r}{' before' if self.before else ''}"


@dataclass(frozen=True)
class Temporal:
    """A condition on a signal of each connection, over a window of time after each occurrence of an event.

    always      whether it has to hold all the time; else: once
    least, most, equals   bounds of the signal
    after, within, until, before  where the window begins and ends
    during      (signal, its values): only the time at which it has one of these
    """

    signal: str
    always: bool
    least: Limit | None = None
    most: Limit | None = None
    equals: Limit | None = None
    after: Moment | None = None
    within: Length | None = None
    until: Moment | None = None
    before: Moment | None = None
    during: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @cached_property
    def key(self) -> str:
        """Text that is the same for the same condition only, such as "always cwnd min 2.0 after first loss"."""
        parts = ["always" if self.always else "eventually", self.signal]
        window = {name: getattr(self, name) for name in ("after", "within", "until", "before")}
        parts += [f"{name} {value}" for name, value in (self.limits | window).items() if value is not None]
        parts += [f"while {signal} {' '.join(map(repr, map(float, values)))}" for signal, values in self.during]
        return " ".join(parts)

    @property
    def limits(self) -> dict[str, Limit]:
        named = {"min": self.least, "max": self.most, "equals": self.equals}
        return {name: limit for name, limit in named.items() if limit is not None}

    @property
    def moments(self) -> tuple[Moment, ...]:
        return tuple(moment for moment in (self.after, self.until, self.before) if moment is not None)

    @property
    def lengths(self) -> tuple[Length, ...]:
        offsets = (moment.offset for moment in self.moments)
        return tuple(length for length in (self.within, *offsets) if length is not None)

    @property
    def sources(self) -> dict[str, Source]:
        """All that it reads, by the words of the plan."""
        sources = {self.signal: SIGNALS[self.signal], **{signal: SIGNALS[signal] for signal, _ in self.during}}
        sources |= {moment.event: EVENTS[moment.event] for moment in self.moments if moment.event}
        return sources | {length.unit: LENGTHS[length.unit] for length in self.lengths if length.unit in LENGTHS}


Answer = Mapping[str, Any]
"""Of a flow: "verdict" (pass, fail, invalid), "text" (the reason), "gap" (relative distance from the bound), and of
a violated condition "time_ns" and "conn"."""

Answers = Mapping[str, Mapping[str, Answer]]
"""By Temporal.key and flow."""
