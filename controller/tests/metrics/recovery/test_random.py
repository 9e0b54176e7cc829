# SPDX-License-Identifier: Apache-2.0
"""Recoveries of made-up senders with any losses: the analyser says what the sender did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from testctl.metrics.core.view import view
from testctl.metrics.recovery import flow_recoveries
from testctl.metrics.recovery.state_machine import walk
from testctl.metrics.recovery.trace import traces
from testctl.records import Records

from controller.tests.support.synthetic import Conversation
from controller.tests.support.synthetic_recovery import MSS, Sender

Load = Callable[[Conversation], Records]

SENDERS = st.builds(
    Sender,
    rule=st.sampled_from(["rfc6675", "rate_halving", "prr", "prr_crb", "prr_ub"]),
    window=st.integers(4, 40),
    segments=st.integers(8, 90),
    lost=st.frozensets(st.integers(0, 70), max_size=14),
    late=st.frozensets(st.integers(0, 90), max_size=4),
    late_us=st.sampled_from([150, 350, 900]),
    isn=st.sampled_from([0, 1000, 2**31 - 7000, 2**32 - 5000, 2**32 - 1]),
)
QUICKLY = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking reads hundreds of captures
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def in_letters(sent: str) -> str:
    """ "RRN" as the analyser writes it."""
    counts = Counter(sent)
    parts = (f"{counts[c] if counts[c] > 1 else ''}{c}" for c in "RN" if counts[c])
    return "".join(parts) or "."


def packets(letters: str) -> int:
    return sum(int(count or 1) for count, _ in re.findall(r"(\d*)([RN])", letters))


def expected(sender: Sender) -> Sequence[tuple[object, ...]]:
    found = []
    for recovery in sender.made:
        stop = recovery.exit if recovery.exit >= 0 else len(sender.letters)
        sent = " ".join(in_letters(text) for text in sender.letters[recovery.first_dup : stop])
        found.append((recovery.entered_by, recovery.exited_by, recovery.flight * MSS, sent))
    return found


@QUICKLY
@given(sender=SENDERS)
def test_what_the_sender_did_is_read_back(load: Load, sender: Sender) -> None:
    sender.run()
    records = load(sender.talk)
    found = flow_recoveries(records, "bulk")
    assert all(recovery.limit in ("", "no SACK: what was delivered is not known") for recovery in found)
    assert [(o.entered_by, o.exited_by, o.flight_bytes, o.sent) for o in found] == expected(sender)
    for recovery, made in zip(found, sender.made, strict=True):
        if recovery.fast and not recovery.limit:
            assert (recovery.prr_delivered, recovery.prr_out) == (made.delivered * MSS, made.out * MSS)
            assert recovery.exited_by != "ack" or recovery.pipe_exit == made.pipe_exit * MSS
            assert sender.rule not in ("prr", "prr_crb") or recovery.prr_over <= 0


@QUICKLY
@given(sender=SENDERS)
def test_what_is_counted_sums_to_what_was_sent(load: Load, sender: Sender) -> None:
    sender.run()
    records = load(sender.talk)
    for recovery in flow_recoveries(records, "bulk"):
        on_acks = [packets(letters) for letters in recovery.sent.split(" ")][-recovery.acks :] if recovery.acks else []
        by_timer = 0 if recovery.fast else recovery.timeouts
        assert recovery.segments_sent == recovery.new_segments + recovery.retransmissions == sum(on_acks) + by_timer
        assert recovery.burst_max == max(on_acks, default=0)
        assert recovery.sent.startswith(recovery.sent_first_round)
    for walked in (walk(trace, pipes=True) for trace in traces(view(records, "bulk"))):
        count = len(walked.trace)
        delivered = walked.delivered(0, count)
        assert int(delivered[-1]) == sender.segments * MSS
        assert (np.diff(delivered) >= 0).all()
        assert (walked.pipe(0, count) >= 0).all()
        assert int(walked.trace.part(0, count).segs.sum()) == sender.sent
