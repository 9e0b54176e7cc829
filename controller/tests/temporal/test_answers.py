# SPDX-License-Identifier: Apache-2.0
"""Answers with their reasons, of frozen raw files: a drop, a recovery, an outage with a timeout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from testctl.core.temporal import EVENTS, LIMITS, PHASES, SIGNALS, STATES, Length, Limit, Moment, Temporal
from testctl.metrics.core.view import view
from testctl.records import Records, load_raw
from testctl.records.schema import BBR_PHASES, SENDER_COLUMNS, TCP_LIMITS, TCP_STATES
from testctl.temporal import answers_of
from testctl.temporal.samples import event, signal

FIXTURES = Path(__file__).parents[1] / "metrics" / "fixtures"
LOSS, RECOVERY, TIMEOUT = (Moment(name, first=True) for name in ("loss", "recovery", "timeout"))
HALF = Limit(0.5, before=True)
TRACED = "tcp_events at the sender"


@pytest.fixture(scope="module")
def records() -> Records:
    return load_raw(FIXTURES / "all_instruments")


def test_words_have_the_numbers_of_the_records() -> None:
    assert (STATES, LIMITS, PHASES) == (TCP_STATES, TCP_LIMITS, BBR_PHASES)


def test_rates_are_the_traces_where_it_has_them(records: Records) -> None:
    """Else those of tcp_info."""
    traced = records.tcp_events
    assert traced is not None
    without = traced
    for name in SENDER_COLUMNS:
        at = traced.schema.get_field_index(name)
        unknown = pa.array([-1] * traced.num_rows).cast(traced.schema.field(at).type)
        without = without.set_column(at, traced.schema.field(at), unknown)
    before = view(replace(records, tcp_events=without, memo={}), "bulk")
    for name in ("pacing_rate", "delivery_rate"):
        now, then = signal(view(records, "bulk"), name), signal(before, name)
        assert now.describe(3).endswith("event 4 of the trace")
        assert then.describe(3) == "sample 4 of tcp_info"
        known = then.value[then.value > 0]
        assert set(known) <= set(now.value), "a sample has what the event before it has"


def test_what_a_sample_of_tcp_info_does_not_know_has_no_value(records: Records) -> None:
    """-1: the kernel has no such number; min_rtt is 2^32 - 1 before any RTT is measured."""
    unknown = records.tcp_info
    count = unknown.num_rows
    for name, values in (
        ("min_rtt", [2**32 - 1, -1] + [7] * (count - 2)),
        ("delivery_rate", [-1, 2**32 - 1] + [7] * (count - 2)),
    ):
        at = unknown.schema.get_field_index(name)
        unknown = unknown.set_column(at, name, pa.array(values, unknown.schema.field(name).type))
    seen = view(replace(records, tcp_info=unknown, tcp_events=None, memo={}), "bulk")
    np.testing.assert_array_equal(signal(seen, "min_rtt").value[:3], [np.nan, np.nan, 7])
    np.testing.assert_array_equal(signal(seen, "delivery_rate").value[:3], [np.nan, 8 * (2**32 - 1), 56])


def test_every_signal_and_event_has_samples(records: Records) -> None:
    """But a bin of a second in a flow that is shorter."""
    flow = view(records, "bulk")
    counts = {name: len(signal(flow, name).conn) for name in SIGNALS} | {n: len(event(flow, n).conn) for n in EVENTS}
    assert [name for name, count in counts.items() if not count] == ["throughput_1s"]
    assert (counts["loss"], counts["mark"], counts["data"], counts["timeout"]) == (8, 7, 1, 1)


@pytest.mark.parametrize(
    ("condition", "flow", "want"),
    [
        (Temporal("cwnd", False, most=Limit(0.75, True), after=RECOVERY, within=Length(3, "rtt")), "bulk", ""),
        (Temporal("cwnd", True, least=Limit(2), until=Moment("timeout")), "bulk", ""),
        (Temporal("state", True, equals=Limit(0), until=Moment("mark")), "bulk", ""),
        (Temporal("cwnd", False, most=HALF, after=Moment("data")), "bulk", ""),
        (
            Temporal("cwnd", True, least=Limit(2)),
            "bulk",
            "fail cwnd of bulk: want always at least 2 in the whole connection; got 1 (at 0.655667 s: retransmit, "
            "snd_una 147696, snd_nxt 150001, event 165 of the trace)",
        ),
        (
            Temporal("cwnd", False, most=HALF, after=LOSS, within=Length(10**7)),
            "bulk",
            "fail cwnd of bulk: want eventually at most 8 (0.5 times 16 before) within 10 ms after first loss at "
            "0.067380 s (data packet 31 with seq 43440 at switch:receiver); got 13 (nearest, at 0.077070 s: ack, "
            "snd_una 33304, snd_nxt 52128, event 47 of the trace)",
        ),
        (
            Temporal("cwnd", False, most=Limit(3), after=RECOVERY, within=Length(5, "acks")),
            "bulk",
            "fail cwnd of bulk: want eventually at most 3 within 5 acks (7.16 ms) after first recovery at 0.098924 s "
            "(ack, snd_una 43440, snd_nxt 59368, event 59 of the trace); got 8 (nearest, at 0.098924 s: ack, snd_una "
            "43440, snd_nxt 59368, event 59 of the trace)",
        ),
        (
            Temporal(
                "state", True, equals=Limit(0), after=Moment("loss", offset=Length(1.5, "rtt")), until=Moment("timeout")
            ),
            "bulk",
            "fail state of bulk: want always open from 36.6 ms after loss 1 at 0.067380 s (data packet 31 with seq "
            "43440 at switch:receiver) until timeout; got recovery (at 0.103995 s, since 0.103769 s: send, snd_una "
            "43440, snd_nxt 62264, event 69 of the trace)",
        ),
        (
            Temporal("rtt", True, most=Limit(20000), before=TIMEOUT),
            "bulk",
            "fail rtt of bulk: want always at most 20 ms before first timeout at 0.655667 s (timeout, snd_una 147696, "
            "snd_nxt 150001, event 164 of the trace); got 21.263 ms (at 0.041324 s: round trip 1 of the flow)",
        ),
        (
            Temporal("cwnd", True, most=Limit(2), after=Moment(time_ns=10**8), during=(("state", (3.0, 4.0)),)),
            "bulk",
            "fail cwnd of bulk: want always at most 2 after 0.100000 s while state is recovery or loss; got 8 (at "
            "0.100000 s, since 0.098924 s: ack, snd_una 43440, snd_nxt 59368, event 59 of the trace)",
        ),
        (
            Temporal("cwnd", True, least=Limit(1), after=TIMEOUT),
            "brief",
            "invalid cwnd of brief: the event timeout never came",
        ),
        (
            Temporal("cwnd", False, most=Limit(0), after=TIMEOUT, within=Length(10**10)),
            "bulk",
            "invalid cwnd of bulk: can't be decided: the trace ends before the window does",
        ),
        (
            Temporal("delivery_rate", False, most=HALF, after=Moment("data")),
            "bulk",
            "invalid delivery_rate of bulk: can't be decided: delivery_rate has no value before the event",
        ),
        (
            Temporal("cwnd", True, least=Limit(1), during=(("state", (1.0,)),)),
            "brief",
            "invalid cwnd of brief: can't be decided: cwnd has no value to judge in the window",
        ),
        (
            Temporal("cwnd", True, least=Limit(1), after=Moment(time_ns=1), within=Length(1, "rtt")),
            "bulk",
            "invalid cwnd of bulk: can't be decided: no round-trip time is known at the event",
        ),
    ],
)
def test_reasons(records: Records, condition: Temporal, flow: str, want: str) -> None:
    answer = answers_of(records, [condition])[condition.key][flow]
    assert f"{answer['verdict']} {answer.get('text', '')}".strip() == (want or "pass")
    if answer["verdict"] == "fail":
        assert answer["gap"] > 0


def test_without_the_instrument_it_is_invalid() -> None:
    records = load_raw(FIXTURES / "loss")
    condition = Temporal("cwnd", True, least=Limit(1), after=Moment("mark"))
    answer = answers_of(records, [condition])[condition.key]["bulk"]
    assert answer == {"verdict": "invalid", "text": f"cwnd of bulk is not known: want {TRACED}"}
    retransmitted = Temporal("rtt", True, least=Limit(1), after=Moment("retransmit"))
    assert answers_of(records, [retransmitted])[retransmitted.key]["bulk"] == {"verdict": "pass"}
