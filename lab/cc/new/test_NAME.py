# SPDX-License-Identifier: Apache-2.0
"""NAME as compiled for this machine."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.cc.host import Connection
from testctl_agent.cc.interface import Operation

from agents.tests.cc.sources import algorithm


@given(st.integers(4, 1 << 20))
def test_loss_halves(cwnd: int) -> None:
    connection = Connection(algorithm("NAME"), cwnd=cwnd)
    assert connection.tell(Operation.LOSS) == cwnd // 2


@given(st.integers(2, 1000))
def test_grows_by_one_segment_a_window(cwnd: int) -> None:
    connection = Connection(algorithm("NAME"), cwnd=cwnd, ssthresh=2)
    for _ in range(cwnd):
        connection.tell(Operation.ACK, acked=1, limited=1)
    assert connection.window.cwnd == cwnd + 1


def test_slow_start_doubles() -> None:
    connection = Connection(algorithm("NAME"), cwnd=10, ssthresh=1000)
    connection.tell(Operation.ACK, acked=10, limited=1)
    assert connection.window.cwnd == 20
