# SPDX-License-Identifier: Apache-2.0
"""The capacity of a link between two times, for every form of rate."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from testctl_agent.spec import aqm, schedule, trace
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Rate

_MAC, _TUN = 14, 4
_MS = 10**6


@lru_cache(maxsize=4)
def _times_ms(rate: str) -> array[int]:
    return trace.parse(rate)


@dataclass(frozen=True)
class Link:
    """A link by its settings.  Times are ns from the start of the traffic.

    rate      in bit/s, "none", a schedule, or a trace
    down      when it is down
    most_bps  rate of its policer, apart from the burst; None: no policer
    framing   bytes of overhead that it adds to each packet
    """

    rate: Value | None = None
    down: str = schedule.NONE
    most_bps: int | None = None
    framing: int = 0

    @classmethod
    def of(cls, settings: Mapping[str, Value | None]) -> Link:
        """Of a switch's port, or of a host (htb_rate)."""
        rate, down, queue, framing = (settings.get(name) for name in ("rate", "down", "aqm", "framing"))
        managed = aqm.parse(str(queue)) if queue else None
        return cls(
            settings.get("htb_rate") if rate is None else rate,
            str(down or schedule.NONE),
            managed["rate"] if managed and managed.kind == "policer" else None,
            int(str(framing or 0)),
        )

    @property
    def constant_bps(self) -> float | None:
        """The constant rate; 0: no rate; None: it varies, or the link is down at times."""
        return None if self.down != schedule.NONE else self.up_bps

    @property
    def up_bps(self) -> float | None:
        """The constant rate while the link is up; 0: no rate; None: it varies."""
        if isinstance(self.rate, str) and self.rate != schedule.NONE:
            return None
        rates = [float(rate) for rate in (self.rate, self.most_bps) if rate not in (None, schedule.NONE)]
        return min(rates, default=0.0)

    @property
    def overhead(self) -> int:
        """Bytes that it counts for each packet in addition to the Ethernet frame; less for a trace."""
        return self.framing + (_TUN - _MAC if trace.is_trace(self.rate) else 0)

    def mean_bps(self, start_ns: int, end_ns: int) -> float | None:
        """The mean rate between two times; None: unlimited at some time in between.

        For equal times it is the rate at that time, and for a trace the mean of one repetition.
        """
        if (constant := self.constant_bps) is not None:
            return constant or None
        if end_ns > start_ns:
            bits = self.bits(start_ns, end_ns)
            return None if bits is None else bits * 1e9 / (end_ns - start_ns)
        if trace.is_trace(self.rate):
            return Link(self.rate).mean_bps(0, _times_ms(str(self.rate))[-1] * _MS)
        return schedule.value_at(schedule.steps_of(self.rate, Rate), start_ns)

    def bits(self, start_ns: int, end_ns: int) -> float | None:
        """Capacity in (start, end], in bits as the link counts them; None: see `mean_bps`."""
        downs = schedule.parse_down(self.down)
        edges = [start_ns, *(min(max(at, start_ns), end_ns) for pair in downs for at in pair), end_ns]
        ups = list(pairwise(edges))[::2]
        if trace.is_trace(self.rate):
            total: float = sum(self._opportunities(high) - self._opportunities(low) for low, high in ups)
            total *= trace.OPPORTUNITY_BYTES * 8
        else:
            steps = schedule.steps_of(self.rate, Rate)
            ends = [*(step.at_ns for step in steps[1:]), end_ns]
            begins = [start_ns, *(step.at_ns for step in steps[1:])]
            nanobits = 0
            for step, begin, end in zip(steps, begins, ends, strict=True):
                length = sum(max(min(high, end) - max(low, begin), 0) for low, high in ups)
                value = self.most_bps if step.value is None else min(step.value, self.most_bps or step.value)
                if length and value is None:
                    return None
                nanobits += length * (value or 0)
            total = nanobits / 1e9
        return total

    def _opportunities(self, at_ns: int) -> int:
        """Opportunities of the trace up to a time."""
        times = _times_ms(str(self.rate))
        turns, rest = divmod(at_ns // _MS, times[-1])
        return turns * len(times) + bisect_right(times, rest) if at_ns >= 0 else 0
