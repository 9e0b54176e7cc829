# SPDX-License-Identifier: Apache-2.0
"""The jitter that is proposed for a lab is that of the times it is made from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.noise.fit import MIN_INTERRUPTS, Jitter, described, fit, lateness
from testctl.records import load_raw

from controller.tests.support.synthetic import Conversation, write_point

MSS = 1448


@pytest.mark.parametrize(
    "had",
    [
        Jitter("exponential", 5_000),
        Jitter("uniform", 12_000),
        Jitter("constant", 3_000),
        Jitter("exponential", 5_000, 200_000, 500),
        Jitter("uniform", 4_000, 1_000_000, 2_000),
    ],
)
def test_a_model_is_found_again(had: Jitter) -> None:
    found = fit(had.draw(60_000, seed=5).astype(np.int64))
    assert found.distribution == had.distribution
    assert found.mean_ns == pytest.approx(had.mean_ns, rel=0.05)
    assert found.tail_ns == pytest.approx(had.tail_ns, rel=0.3)
    if had.tail_ns:
        assert found.tail_every == pytest.approx(had.tail_every, rel=0.3)


def test_tuples_are_those_of_a_plan() -> None:
    assert Jitter("exponential", 5_000).tuples("receiver") == [
        ("receiver", "jitter", "5us"),
        ("receiver", "jitter_distribution", "exponential"),
    ]
    assert Jitter("uniform", 1_500, 20_000, 700).tuples("receiver")[2:] == [
        ("receiver", "jitter_tail", "20us"),
        ("receiver", "jitter_tail_every", "700"),
    ]


def test_the_first_packet_of_a_batch_tells_how_late_the_host_was(tmp_path: Path) -> None:
    """Packets 1 and 2 reach the host before it has received packet 0, which is 30 µs late: they are of its batch."""
    talk = Conversation(delay_us=10)
    sent = (100, 110, 120, 200, 300)
    received = (140, 140, 140, 210, 317)
    for n, (at, there) in enumerate(zip(sent, received, strict=True)):
        talk.delay_us = there - at
        talk.data(at, MSS * n)
    write_point(tmp_path, talk.captures())
    assert lateness(load_raw(tmp_path))["receiver"].tolist() == [30_000, 0, 7_000]


def test_too_few_interrupts_say_nothing() -> None:
    few = np.arange(MIN_INTERRUPTS - 1)
    with pytest.raises(ValueError, match="want at least 100 interrupts; got 99"):
        fit(few)


def test_what_is_kept_has_the_models_quantiles_beside_the_measured_ones() -> None:
    kept = described(Jitter("exponential", 10_000).draw(20_000, 1).astype(np.int64), seed=1)
    assert kept["interrupts"] == 20_000
    for name in ("p50", "p90", "p99", "p999"):
        assert kept["model_us"][name] == pytest.approx(kept["measured_us"][name], rel=0.15)
