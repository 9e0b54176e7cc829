# SPDX-License-Identifier: Apache-2.0
"""Loss recovery as compiled for this machine: RFC 6937's example, and what the papers claim of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.cc.host import Connection
from testctl_agent.cc.interface import Operation

from agents.tests.cc.sender import Sender
from agents.tests.cc.sources import algorithm

GROWTHS = ("reno", "cubic")
RECOVERIES = ("prr", "prr_crb", "prr_ub", "rfc6675", "halving")

SINGLE_LOSS = {
    "rfc6675": "N N R . . . . . . . . N N N N N N N N",
    "halving": "N N R . N . N . N . N . N . N . N . N",
    "prr": "N N R . N . N . N . N . N . N . . N N",
}
"""RFC 6937, section 3.1: what is sent on ACKs 1 to 19 when the first of 20 segments is lost."""


@pytest.mark.parametrize("recovery", SINGLE_LOSS)
def test_rfc6937_single_loss(recovery: str) -> None:
    sender = Sender(f"reno_{recovery}", 20, {1})
    assert " ".join(sender.ack() for _ in range(19)) == SINGLE_LOSS[recovery]


@pytest.mark.parametrize("recovery", ["prr_crb", "prr_ub"])
def test_bounds_do_not_matter_for_a_single_loss(recovery: str) -> None:
    sender = Sender(f"reno_{recovery}", 20, {1})
    assert " ".join(sender.ack() for _ in range(19)) == SINGLE_LOSS["prr"]


def test_rfc6675_bursts_under_heavy_loss() -> None:
    """15 of 20 lost: pipe falls below ssthresh, and the whole difference is sent at once."""
    sent = [Sender(f"reno_{name}", 20, set(range(1, 16))) for name in RECOVERIES]
    first = dict(zip(RECOVERIES, [[s.ack() for _ in range(3)][-1] for s in sent], strict=True))
    assert {name: len(did) for name, did in first.items()} == {
        "prr": 2, "prr_crb": 1, "prr_ub": 7, "rfc6675": 7, "halving": 1,
    }  # fmt: skip


def test_cubic_reduces_in_its_own_proportion() -> None:
    """0.7: PRR sends seven segments for ten delivered, rate halving still one for two."""
    prr, halving = Sender("cubic_prr", 100, {1}), Sender("cubic_halving", 100, {1})
    assert sum(prr.ack() != "." for _ in range(42)) == 2 + 28
    assert sum(halving.ack() != "." for _ in range(42)) == 2 + 20
    assert prr.ssthresh == halving.ssthresh == 102 * 7 // 10


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("recovery", RECOVERIES)
@given(
    flight=st.integers(2, 5000),
    acks=st.lists(st.tuples(st.integers(0, 10), st.integers(0, 5000)), min_size=1, max_size=60),
)
def test_bounds(growth: str, recovery: str, flight: int, acks: list[tuple[int, int]]) -> None:
    """Whatever pipe is estimated to be: how much each recovery lets out."""
    connection = Connection(algorithm(f"{growth}_{recovery}"), cwnd=flight)
    window = connection.window
    window.ssthresh = connection.tell(Operation.LOSS, flight=flight)
    assert 2 <= window.ssthresh <= max(flight, 2)
    connection.tell(Operation.RECOVERY_ENTER, flight=flight, pipe=flight)
    sent = delivered = 0
    for acked, pipe in acks:
        delivered += acked
        connection.tell(Operation.RECOVERY_ACK, flight=flight, pipe=pipe, acked=acked, sent=sent)
        send = max(window.cwnd - pipe, 0)
        if recovery == "halving":
            assert window.cwnd <= pipe + 1
        elif recovery == "rfc6675":
            assert window.cwnd == (window.ssthresh if sent else max(window.ssthresh, pipe + 1))
        else:
            assert window.cwnd >= pipe
            assert window.cwnd <= window.ssthresh or pipe >= window.ssthresh
        sent += send
        if recovery == "prr" and all(a for a, _ in acks):
            assert sent <= max(2 * delivered, 1)
        if recovery == "prr_crb":
            assert sent <= max(delivered, 1)
    connection.tell(Operation.RECOVERY_EXIT, flight=flight)
    assert window.cwnd <= window.ssthresh


@pytest.mark.parametrize("recovery", ["prr", "prr_ub", "rfc6675"])
@given(flight=st.integers(10, 300), data=st.data())
def test_converges_to_ssthresh(recovery: str, flight: int, data: st.DataObject) -> None:
    """With no more losses than the reduction, pipe is ssthresh when the round trip ends."""
    lost = data.draw(st.sets(st.integers(2, flight - 4), max_size=flight // 2 - 2)) | {1}
    sender = Sender(f"reno_{recovery}", flight, lost)
    for _ in range(flight - len(lost)):
        sender.ack()
    assert abs(sender.cwnd - sender.ssthresh) <= 1


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("recovery", ["prr", "prr_crb", "prr_ub", "halving"])
def test_a_timer_that_finds_losses_lets_one_segment_out(growth: str, recovery: str) -> None:
    """Linux's RACK timer begins a recovery without an ACK: packets marked lost must not allow a burst."""
    connection = Connection(algorithm(f"{growth}_{recovery}"), cwnd=16)
    connection.window.ssthresh = connection.tell(Operation.LOSS, flight=16)
    connection.tell(Operation.RECOVERY_ENTER, flight=16, pipe=12)
    assert connection.window.cwnd == 12 + 1
