# SPDX-License-Identifier: Apache-2.0
"""What is drawn is what the records say."""

from __future__ import annotations

import json

import pytest
from testctl.report.factors import describe, factors
from testctl.report.payload import BINS_NS, as_script, payload
from testctl.report.series import Series, read_series
from testctl.report.style import show_metric, show_rate, show_time
from testctl.results import Run


@pytest.fixture(scope="package")
def stalled(run: Run) -> Series:
    series = read_series(run.points[0])
    assert series is not None
    return series


@pytest.mark.parametrize("width", [*BINS_NS, 1_000])
def test_the_bins_sum_to_the_bytes_on_the_wire(stalled: Series, width: int) -> None:
    rate = stalled.rates[0]
    total = (rate.bins(width, stalled.duration_ns) * (width / 8e9)).sum()
    assert total == pytest.approx(int(rate.wire_bytes.sum()), rel=1e-9)


def test_a_stall_says_what_was_owed_and_shows_its_packets(stalled: Series) -> None:
    stall = stalled.stalls[0]
    assert stall.cause == "ack_owed"
    assert stall.title.startswith("ACK owed for ")
    assert stall.title.endswith(" ms")
    assert stall.ended == "retransmission timeout"
    assert 195e6 < stall.length_ns < 215e6
    assert [proof.time_ns for proof in stall.proof] == sorted(proof.time_ns for proof in stall.proof)
    assert {proof.after for proof in stall.proof} == {False, True}
    first_after = next(proof for proof in stall.proof if proof.after)
    assert first_after.text.startswith("sends data ")
    assert first_after.text.endswith("(retransmission)")
    assert any(proof.key and proof.text.startswith("sends ACK ") for proof in stall.proof)


def test_the_payload_is_compact_and_keeps_the_packets_around_stalls(stalled: Series) -> None:
    data = payload(stalled)
    assert len(as_script(data)) < 700_000
    assert [bin_["label"] for bin_ in data["throughput"]["bins"]] == ["100 ms", "10 ms", "1 ms", "100 µs"]
    sequence = data["sequence"][0]
    assert len(sequence["stalls"]) == len(stalled.stalls)
    assert len(sequence["retrans"]["x"]) == len(stalled.lanes[0].retrans_ns)
    last = stalled.lanes[0].data_ns
    before = last[last <= stalled.stalls[0].start_ns][-40:]
    assert {round(t / 1e9, 6) for t in before.tolist()} <= set(sequence["data"]["x"])
    assert data["latency"]["y"][-1] == 1


def test_script_data_can_not_end_its_element() -> None:
    text = as_script({"a": "</script><!-- & \u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!-- & \u2028"}


def test_factors_are_what_varies(run: Run) -> None:
    found = factors(run.points)
    assert [factor.label for factor in found] == ["cc", "htb_mark", "htb_ecn_threshold"]
    assert list(found[0].values) == ["dctcp_bug", "dctcp", "dctcp_resched"]
    assert describe(run.points[0], found) == "cc dctcp_bug, htb_mark data, htb_ecn_threshold 10kB"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (show_time(200e6), "200 ms"),
        (show_time(1.25e9), "1.25 s"),
        (show_time(20e3), "20 µs"),
        (show_time(5), "5 ns"),
        (show_rate(1.912e9), "1.91 Gb/s"),
        (show_rate(64e3), "64 kb/s"),
        (show_metric("latency_p99_us", 15.25), "15.2 µs"),
        (show_metric("own_queue_max_bytes", 30_000), "30 kB"),
        (show_metric("stall_count", 7), "7"),
        (show_metric("stall_longest_ms", 0), "0"),
        (show_metric("stability_cv_10ms", 0.0123456), "0.0123"),
        (show_metric("jain", None), "–"),
    ],
)
def test_numbers_read_well(text: str, wanted: str) -> None:
    assert text == wanted
