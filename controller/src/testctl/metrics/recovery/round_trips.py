# SPDX-License-Identifier: Apache-2.0
"""The round trips of a connection at its sender: samples, and three estimates made of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from testctl.metrics.core.rtts import handshake, round_trips
from testctl.metrics.core.view import FlowView
from testctl.records.schema import Ints

_SAMPLES = 64
"""Samples that an estimate at a time goes back."""
_KEPT = 7 / 8
"""1 - alpha of RFC 6298, section 2."""


class RoundTrips:
    """time_ns, rtt_ns: when the ACK came and the round trip of each packet that has a sample, in order of departure."""

    def __init__(self, flow: FlowView, conn: int) -> None:
        samples = round_trips(flow)
        self.time_ns, self.rtt_ns = samples.time_ns, samples.rtt_ns
        if not (own := samples.conn == conn).all():
            self.time_ns, self.rtt_ns = self.time_ns[own], self.rtt_ns[own]
        self._flow, self._conn = flow, conn

    @cached_property
    def _handshake(self) -> list[int]:
        return handshake(self._flow, self._conn)

    @cached_property
    def by_ack(self) -> tuple[Ints, Ints]:
        """(when an ACK came, the round trip of the oldest packet that it acknowledged), ascending."""
        order = np.lexsort((-self.rtt_ns, self.time_ns))
        time_ns, rtt_ns = self.time_ns[order], self.rtt_ns[order]
        oldest = np.flatnonzero(np.diff(time_ns, prepend=-(2**62)))
        return time_ns[oldest], rtt_ns[oldest]

    def medians_ns(self, at_ns: Ints) -> Ints:
        """The median of the 64 samples before each time; if there is none the first sample, else the handshake's, or
        0."""
        first = [*self.rtt_ns[:1], *self._handshake[1:], 0][0]
        ends = np.searchsorted(self.time_ns, at_ns, side="right")
        medians = [np.median(self.rtt_ns[max(end - _SAMPLES, 0) : end]) if end else first for end in ends]
        return np.array(medians, np.int64)

    @cached_property
    def _with_handshake(self) -> tuple[Ints, Ints]:
        time_ns, rtt_ns = self.by_ack
        first = np.array(self._handshake, np.int64).reshape(-1, 2)
        return np.append(first[:, 0], time_ns), np.append(first[:, 1], rtt_ns)

    def smoothed_ns(self, at_ns: int) -> int:
        """The smoothed round trip (RFC 6298, section 2) of the 64 entries of by_ack before a time, the handshake's
        included; if there is none the first one after, or 0."""
        time_ns, rtt_ns = self._with_handshake
        if not len(time_ns):
            return 0
        end = max(int(np.searchsorted(time_ns, at_ns, side="right")), 1)
        last = rtt_ns[max(end - _SAMPLES, 0) : end]
        weights = _KEPT ** np.arange(len(last) - 1, -1, -1.0)
        weights[1:] *= 1 - _KEPT
        return int(weights @ last)

    def srtts_ns(self) -> list[float]:
        """SRTT (RFC 6298, section 2) after each entry of by_ack."""
        srtts = list[float]()
        for rtt in self.by_ack[1].tolist():
            srtts.append(srtts[-1] + (rtt - srtts[-1]) / 8 if srtts else float(rtt))
        return srtts
