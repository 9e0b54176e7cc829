# SPDX-License-Identifier: Apache-2.0
"""RFC 6937, section 3.1: one loss in a window of 20, read back from packets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testctl.metrics import analyse
from testctl.metrics.recovery import flow_recoveries
from testctl.records import Records

from controller.tests.support.synthetic import Conversation
from controller.tests.support.synthetic_recovery import MSS, RTT_US, Sender

Load = Callable[[Conversation], Records]

ROWS = {
    "rfc6675": "N N R . . . . . . . . N N N N N N N N",
    "rate_halving": "N N R . N . N . N . N . N . N . N . N",
    "prr": "N N R . N . N . N . N . N . N . . N N",
}


@pytest.mark.parametrize("rule", ROWS)
def test_a_row_is_read_back_exactly(load: Load, rule: str) -> None:
    sender = Sender(rule, window=20, segments=60, lost=[0]).run()
    assert " ".join(sender.letters[:19]) == ROWS[rule], "the sender of this test"
    records = load(sender.talk)
    (found,) = flow_recoveries(records, "bulk")
    assert found.sent_first_round == ROWS[rule]
    assert found.sent.startswith(ROWS[rule])
    assert (found.entered_by, found.exited_by, found.limit, found.dup_acks) == ("dupacks", "ack", "", 3)
    assert (found.flight_bytes, found.una, found.point) == (22 * MSS, 0, 22 * MSS)
    assert found.pipe_entry == 18 * MSS
    got = analyse(records).metrics["bulk"]
    assert got["recovery_sent_first_round"] == ROWS[rule]
    assert (got["recoveries"], got["recoveries_not_measured"], got["recovery_timeouts"]) == (1, 0, 0)
    assert got["lost_retransmissions"] == 0
    assert got["recovery_burst_max"] == 1
    assert got["prr_out_ratio_max"] <= 1


def test_silence_and_time_are_those_of_the_packets(load: Load) -> None:
    (found,) = flow_recoveries(load(Sender("rfc6675", 20, 60, [0]).run().talk), "bulk")
    assert found.silent_acks == 8, "ACKs 4 to 11"
    # R leaves 1 µs after the third ACK; ACKs 4 to 12 come 100 µs apart from then on, and N 1 µs after the last.
    assert found.silence_ns == 901_000
    assert found.length_ns == RTT_US * 1000 + 1000, "until the ACK of R, which left 1 µs after the entry"
    # pipe stays at 11 segments from ACK 12 on: cwnd = ssthresh
    assert found.pipe_exit == 11 * MSS
