# SPDX-License-Identifier: Apache-2.0
"""TCP-AdaptiveReno as compiled for this machine, against its formulas."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.cc.host import Connection
from testctl_agent.cc.interface import Operation

from agents.tests.cc.sources import algorithm

RTT_MIN = 10_000
RTT_CONG = 20_000
windows = st.integers(2, 1 << 20)


class Flow:
    """A connection that has seen its least RTT and, at a first loss, the RTT of congestion."""

    def __init__(self, cwnd: int, segments_per_s: int = 0) -> None:
        self.connection = Connection(algorithm("areno"), cwnd=cwnd, ssthresh=2)
        self.now_us, self.delivered, self.segments_per_s = 1_000_000, 0, segments_per_s
        for _ in range(100 if segments_per_s else 1):
            self.sample(RTT_MIN)
        self.sample(RTT_CONG)
        self.first = self.connection.tell(Operation.LOSS, flight=cwnd)

    def sample(self, rtt_us: int) -> None:
        """Three round trips of 100 ms with this RTT in each ACK."""
        for _ in range(3):
            self.now_us += 100_000
            self.delivered += self.segments_per_s // 10
            self.connection.tell(Operation.SAMPLE, now_us=self.now_us, rtt_us=rtt_us, delivered=self.delivered)

    def loss(self, rtt_us: int) -> int:
        self.sample(rtt_us)
        return self.connection.tell(Operation.LOSS)

    def grow(self, cwnd: int, rtts: int = 1) -> int:
        """One ACK a segment for so many windows; returns what cwnd grew by."""
        window = self.connection.window
        window.cwnd = cwnd
        for _ in range(rtts):
            for _ in range(window.cwnd):
                self.connection.tell(Operation.ACK, acked=1, limited=1, advanced=1)
        return window.cwnd - cwnd


def growth(c: float, wm: float) -> float:
    """Winc(c) - 1 of the paper, for alpha = 10."""
    a, e = 10, math.exp(-10)
    beta, gamma = 2 * wm * (1 / a - (1 / a + 1) * e), 1 - 2 * wm * (1 / a - (1 / a + 0.5) * e)
    return wm * math.exp(-a * c) + c * beta + gamma - 1


@given(windows)
def test_congestion_is_reno_halving(cwnd: int) -> None:
    flow = Flow(cwnd)
    assert flow.first == max(cwnd // 2, 2)
    assert flow.loss(RTT_CONG) == max(cwnd // 2, 2)
    assert flow.loss(10 * RTT_CONG) == max(cwnd // 2, 2)


@given(windows)
def test_no_congestion_is_no_reduction(cwnd: int) -> None:
    assert Flow(cwnd).loss(RTT_MIN) == cwnd


@given(windows, st.integers(RTT_MIN, RTT_CONG))
def test_reduction_by_congestion(cwnd: int, rtt_us: int) -> None:
    c = (rtt_us - RTT_MIN) / (RTT_CONG - RTT_MIN)
    want = cwnd / (1 + c)
    assert abs(Flow(cwnd).loss(rtt_us) - max(want, 2)) <= 1 + want * 2e-5


def test_rtt_of_congestion_is_an_average() -> None:
    """0.85 * 20 ms + 0.15 * 12 ms = 18.8 ms: c of 14.4 ms is then 1/2."""
    flow = Flow(3000)
    flow.loss(12_000)
    assert flow.loss(14_400) == 2000


@given(windows)
def test_a_mark_halves(cwnd: int) -> None:
    flow = Flow(cwnd)
    flow.sample(RTT_MIN)
    assert flow.connection.tell(Operation.ECN) == max(cwnd // 2, 2)


@given(st.integers(2, 400), st.integers(0, 1_000_000))
def test_congestion_grows_as_reno(cwnd: int, segments_per_s: int) -> None:
    """One segment a round trip, whatever the bandwidth."""
    flow = Flow(cwnd, segments_per_s)
    flow.sample(RTT_CONG)
    assert flow.grow(cwnd, rtts=5) == 5


@given(st.integers(100, 2000), st.floats(0, 1), st.integers(1_000, 200_000))
def test_growth_follows_the_formula(cwnd: int, c: float, segments_per_s: int) -> None:
    """Over one round trip from Wprobe = 0; less than Reno's growth is never asked of Wbase."""
    flow = Flow(cwnd, segments_per_s)
    rtt_us = round(RTT_MIN + c * (RTT_CONG - RTT_MIN))
    flow.sample(rtt_us)
    wm = segments_per_s / 1000
    want = 1 + max(growth((rtt_us - RTT_MIN) / (RTT_CONG - RTT_MIN), wm), 0)
    # 1 / W is counted down while W grows
    least = cwnd * (math.exp(want / (cwnd + want)) - 1) if want < cwnd else 0
    got = flow.grow(cwnd)
    assert least * 0.97 - 2 <= got <= want * 1.03 + 2


def test_bursts_are_not_congestion() -> None:
    """RTTs that wander within the noise where no loss ever met a queue: hardly a reduction."""
    flow = Flow(1000)
    for _ in range(60):
        flow.loss(RTT_MIN)
    for high in (RTT_MIN + 100, RTT_MIN + 300, RTT_MIN + 300):
        flow.now_us += 5_000
        flow.connection.tell(Operation.SAMPLE, now_us=flow.now_us, rtt_us=high)
    assert flow.connection.tell(Operation.LOSS) == 1000


def test_a_loss_in_slow_start_takes_the_last_sample() -> None:
    connection = Connection(algorithm("areno"), cwnd=100)
    connection.tell(Operation.SAMPLE, now_us=1_000_000, rtt_us=RTT_MIN)
    connection.tell(Operation.SAMPLE, now_us=1_002_000, rtt_us=RTT_CONG)
    assert connection.tell(Operation.LOSS) == 50


def test_before_the_first_loss_it_is_reno() -> None:
    connection = Connection(algorithm("areno"), cwnd=10, ssthresh=20)
    connection.tell(Operation.SAMPLE, now_us=1, rtt_us=RTT_MIN)
    connection.tell(Operation.ACK, acked=10, limited=1)
    assert connection.window.cwnd == 20
    for _ in range(20):
        connection.tell(Operation.ACK, acked=1, limited=1)
    assert connection.window.cwnd == 21


def test_an_application_that_sends_little_does_not_grow() -> None:
    flow = Flow(100)
    flow.connection.tell(Operation.ACK, acked=50, limited=0)
    assert flow.connection.window.cwnd == 100


def test_probe_falls_back_when_congestion_comes() -> None:
    """0 < c < 1: Wprobe converges to 0, and never below."""
    flow = Flow(100, 100_000)
    flow.sample(RTT_MIN)
    grown = flow.grow(100)
    assert grown > 50
    flow.sample((RTT_MIN + RTT_CONG) // 2)
    window = flow.connection.window
    peak = window.cwnd
    flow.grow(window.cwnd, rtts=3)
    assert window.cwnd < peak - 15
    flow.grow(window.cwnd, rtts=20)
    assert 100 < window.cwnd < 130


def test_a_timeout_is_taken_over() -> None:
    """The kernel sets the window to 1: slow start to ssthresh, then from there."""
    flow = Flow(100, 100_000)
    flow.connection.window.ssthresh, flow.connection.window.cwnd = 50, 1
    while flow.connection.window.cwnd < 50:
        before = flow.connection.window.cwnd
        flow.connection.tell(Operation.ACK, acked=1, limited=1)
        assert flow.connection.window.cwnd == before + 1
