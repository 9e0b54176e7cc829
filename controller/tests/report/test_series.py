# SPDX-License-Identifier: Apache-2.0
"""Stalls, factors and numbers read well."""

from __future__ import annotations

import pytest
from testctl.core.units import show_metric, show_rate, show_time
from testctl.report.factors import describe, factors
from testctl.report.stalls import Stall, read_stalls
from testctl.results import Run


@pytest.fixture(scope="package")
def stalls(run: Run) -> list[Stall]:
    records = run.points[0].records()
    assert records is not None
    return read_stalls(run.points[0].stalls(), records.packets)


def test_a_stall_says_what_was_owed_and_shows_its_packets(stalls: list[Stall]) -> None:
    stall = stalls[0]
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
