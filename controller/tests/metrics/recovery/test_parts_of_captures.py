# SPDX-License-Identifier: Apache-2.0
"""Recoveries of which a capture shows a part: one that begins or ends in them, or has a gap."""

from __future__ import annotations

import numpy as np
import pytest
from testctl.metrics.recovery import flow_recoveries

from controller.tests.support.synthetic import T0_NS, Conversation
from controller.tests.support.synthetic_recovery import Sender

from .test_recoveries import Load, metrics, opening


def cut(talk: Conversation, first_us: float, last_us: float = 1e12) -> Conversation:
    """Only what both captures saw between two times."""
    low, high = T0_NS + first_us * 1000, T0_NS + last_us * 1000
    for where, parts in talk.seen.items():
        talk.seen[where] = [part for part in parts if low <= int(part["time_ns"][0]) < high]
    return talk


def test_capture_that_starts_in_a_recovery_says_so(load: Load) -> None:
    sender = Sender("prr", 20, 90, [0, 5, 40]).run()
    whole = flow_recoveries(load(sender.talk), "bulk")
    assert [recovery.limit for recovery in whole] == ["", ""]
    records = load(cut(sender.talk, whole[0].entry_ns / 1000 - 150))
    found = flow_recoveries(records, "bulk")
    # The first recovery's retransmissions may look like new data: then it is not seen at all.
    assert found[-1].sent == whole[1].sent
    assert (found[-1].limit, found[-1].flight_bytes) == ("", whole[1].flight_bytes)
    for recovery in found[:-1]:
        assert recovery.limit.startswith("the capture ")
        assert (recovery.sent, recovery.prr_out, recovery.flight_bytes, recovery.pipe_entry) == ("", -1, -1, -1)
    assert metrics(records)["recoveries_not_measured"] == len(found) - 1


def test_capture_that_ends_in_a_recovery(load: Load) -> None:
    sender = Sender("prr", 20, 60, [0]).run()
    (whole,) = flow_recoveries(load(sender.talk), "bulk")
    records = load(cut(sender.talk, 0, whole.entry_ns / 1000 + 1000))
    (found,) = flow_recoveries(records, "bulk")
    assert (found.exited_by, found.limit, found.exit_ns) == ("end", "the capture ends in it", -1)
    assert whole.sent.startswith(found.sent)
    assert (found.length_ns, found.pipe_exit, found.excess_window) == (-1, -1, None)
    got = metrics(records)
    assert (got["recoveries"], got["recoveries_not_measured"]) == (1, 1)
    assert np.isnan(got["recovery_time_mean_ms"])


@pytest.mark.parametrize(("missing", "limit"), [(0, "gap"), (12, "gap"), (21, "gap"), (30, "gap"), (45, "")])
def test_capture_with_a_gap(load: Load, missing: int, limit: str) -> None:
    """A data packet that left the sender was not captured there; 45 left after the recovery."""
    sender = Sender("prr", 20, 60, [0]).run()
    talk = sender.talk
    data = [i for i, part in enumerate(talk.seen["sender"]) if int(part["length"][0])]
    del talk.seen["sender"][data[missing]]
    (found,) = flow_recoveries(load(talk), "bulk")
    assert found.limit == ("the capture has a gap" if limit else "")
    assert bool(found.sent) == bool(not limit)


def test_an_ack_of_what_the_capture_does_not_show(load: Load) -> None:
    """The last data that left was not captured, nor was anything after it but a retransmission."""
    talk = opening()
    for n in (1, 2, 3):
        talk.gets(2000 + 10 * n, 0)
    talk.gets(2100, 40)
    talk.send(2131, 0)
    records = load(talk)
    flow_recoveries(records, "bulk")
    assert "recoveries" in metrics(records)
