# SPDX-License-Identifier: Apache-2.0
"""Estimates the offset between the clocks of two hosts from packets in both directions.

t1 and t4 are the request's departure and the reply's arrival by the near clock; t2 and t3 are the request's arrival
and the reply's departure by the far clock.  No packet arrives before it left (RFC 5905, section 8), so

    t3 - t4  <=  far - near  <=  t2 - t1

The error of the offset is therefore at most half of the round trip (t4 - t1) - (t3 - t2), for any delays in the two
directions.  The quickest exchange has the smallest error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_PARTS = 16


@dataclass(frozen=True)
class Exchange:
    """The four times of a request and its reply, in ns; t1, t4 by the near clock, t2, t3 by the far clock."""

    t1: int
    t2: int
    t3: int
    t4: int

    @property
    def low(self) -> int:
        return self.t3 - self.t4

    @property
    def high(self) -> int:
        return self.t2 - self.t1

    @property
    def rtt(self) -> int:
        """Round-trip time; negative if a clock was set in between."""
        return self.high - self.low

    @property
    def offset(self) -> int:
        return (self.low + self.high) // 2

    @property
    def at(self) -> int:
        return (self.t1 + self.t4) // 2


@dataclass(frozen=True)
class Estimate:
    """far clock - near clock.

    offset_ns, error_ns  at the near clock's at_ns: the true offset lies within offset +- error
    error_run_ns         the same for the whole of the exchange, drift included
    drift_ppm            how the offset grows, by the quickest exchange of each of 16 parts
    """

    offset_ns: int
    error_ns: int
    error_run_ns: int
    drift_ppm: float
    samples: int
    rtt_ns: int
    at_ns: int
    begin_ns: int
    end_ns: int


def estimate(exchanges: Sequence[Exchange]) -> Estimate:
    """The estimate from all exchanges.  Raises ValueError if no exchange is valid."""
    whole = [exchange for exchange in exchanges if exchange.rtt >= 0]
    if not whole:
        raise ValueError(f"want an exchange with a round trip of 0 ns or more; got {len(exchanges)} without")
    best = min(whole, key=lambda exchange: exchange.rtt)
    quick = quickest_of_parts(whole)
    offset = best.offset
    return Estimate(
        offset_ns=offset,
        error_ns=max(best.high - offset, offset - best.low),
        error_run_ns=max(max(exchange.high - offset, offset - exchange.low) for exchange in quick),
        drift_ppm=_slope(quick) * 1e6,
        samples=len(whole),
        rtt_ns=best.rtt,
        at_ns=best.at,
        begin_ns=min(exchange.t1 for exchange in whole),
        end_ns=max(exchange.t4 for exchange in whole),
    )


def quickest_of_parts(whole: Sequence[Exchange]) -> list[Exchange]:
    """The exchange with the shortest round trip in each part of the time, in order."""
    begin, end = min(exchange.at for exchange in whole), max(exchange.at for exchange in whole)
    parts: dict[int, Exchange] = {}
    for exchange in whole:
        part = (exchange.at - begin) * _PARTS // (end - begin + 1)
        if part not in parts or exchange.rtt < parts[part].rtt:
            parts[part] = exchange
    return [parts[part] for part in sorted(parts)]


def _slope(points: Sequence[Exchange]) -> float:
    """Least squares through (at, offset); 0 for a single point."""
    first = points[0]
    times = [point.at - first.at for point in points]
    offsets = [point.offset - first.offset for point in points]
    mean_time, mean_offset = sum(times) / len(times), sum(offsets) / len(offsets)
    spread = sum((time - mean_time) ** 2 for time in times)
    if not spread:
        return 0.0
    return sum((t - mean_time) * (o - mean_offset) for t, o in zip(times, offsets, strict=True)) / spread
