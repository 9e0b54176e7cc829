# SPDX-License-Identifier: Apache-2.0
"""What is drawn is what the records say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testctl.core.units import show_metric, show_rate, show_time
from testctl.curves import series
from testctl.metrics.core.view import view
from testctl.report.embedded import BINS_NS, EACH_SIDE, as_script, embedded
from testctl.report.factors import describe, factors
from testctl.report.packed import packed
from testctl.report.stalls import Stall, read_stalls
from testctl.results import Run

from controller.tests.report.reading import lines


@pytest.fixture(scope="package")
def stalls(run: Run) -> list[Stall]:
    records = run.points[0].records()
    assert records is not None
    return read_stalls(run.points[0].stalls(), records.packets)


@pytest.fixture(scope="package")
def data(run: Run) -> dict[str, Any]:
    found = embedded(run.points[0])
    assert found is not None
    return found


@pytest.mark.parametrize("width", BINS_NS)
def test_the_bins_sum_to_the_bytes_on_the_wire(run: Run, data: dict[str, Any], width: int) -> None:
    records = run.points[0].records()
    assert records is not None
    (shown,) = (one["data"] for one in data["figures"]["throughput"] if one["bin"] == width)
    (line,) = lines(shown)
    sums = series(records, "bulk", "throughput", width)["wire_bytes"].to_numpy()
    if "dt" in line:
        total = sum(line["y"]) * width / 8e9
        assert total == pytest.approx(int(sums.sum()), rel=1e-6)
    else:
        assert max(line["y"]) == pytest.approx(sums.max() * 8e9 / width)


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


def test_the_data_is_compact_and_has_the_packets_around_stalls(
    run: Run, stalls: list[Stall], data: dict[str, Any]
) -> None:
    assert len(packed(data)) < 25_000
    assert data["bins"] == list(BINS_NS)
    assert [(one["start_ns"], one["end_ns"]) for one in data["stalls"]["rows"]] == [
        (stall.start_ns, stall.end_ns) for stall in stalls
    ]
    records = run.points[0].records()
    assert records is not None
    sent = view(records, "bulk").sent["time_ns"]
    before = sent[sent <= stalls[0].start_ns][-EACH_SIDE:].tolist()
    windows = [one for one in data["figures"]["seq"] if one["from"] <= before[0] and before[-1] < one["to"]]
    nearest = min(windows, key=lambda one: one["to"] - one["from"])
    assert nearest["data"]["bucket_ns"] == 0
    found = {line["name"]: line for line in lines(nearest["data"])}
    assert set(before) <= {t + nearest["from"] for t in found["data"]["t"]}
    assert data["distribution"]["y"][-1] == 1


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
