# SPDX-License-Identifier: Apache-2.0
"""What makes a commit good or bad, and ends that are equal, the wrong way round, or can't be compared."""

from __future__ import annotations

import re
from typing import Any

import pytest
from testctl.bisect.criterion import Criterion
from testctl.bisect.measure import Measurement
from testctl_agent.spec.errors import PlanError, TestbedError


def one(verdict: str = "pass", speed: Any = 1.0, digest: str = "a", **more: Any) -> Measurement:
    metrics = {"point": {"bulk": {"throughput_bps": speed}, "*": {"jain": 1.0}}}
    return Measurement(
        "0" * 40, verdict=verdict, metrics=metrics, digest=digest, expectations={"fast": verdict}, **more
    )


GOOD, BAD = one(), one("fail", 9.0, "b")


@pytest.mark.parametrize(
    ("criterion", "measured", "verdict"),
    [
        (Criterion(), one("pass", 9.0, "b"), "good"),
        (Criterion(), one("fail"), "bad"),
        (Criterion(), one("invalid"), "bad"),
        (Criterion(expect="fast"), one("fail"), "bad"),
        (Criterion(metric="throughput_bps"), one("fail", 4.9), "good"),
        (Criterion(metric="bulk.throughput_bps"), one("pass", 5.1), "bad"),
        (Criterion(digest=True), one("fail"), "good"),
        (Criterion(digest=True), one("pass", digest="c"), "bad"),
    ],
)
def test_verdicts(criterion: Criterion, measured: Measurement, verdict: str) -> None:
    criterion.check_ends(GOOD, BAD)
    assert criterion.judge(measured, GOOD, BAD) == verdict


@pytest.mark.parametrize(
    ("criterion", "good", "bad", "words"),
    [
        (Criterion(), GOOD, GOOD, "are the same by the verdict of the plan: pass; there is nothing to bisect"),
        (Criterion(digest=True), GOOD, GOOD, "are the same by the digest of the records"),
        (Criterion(metric="throughput_bps"), BAD, BAD, "are the same by the metric throughput_bps: 9"),
        (Criterion(), BAD, GOOD, "want it the other way round"),
        (Criterion(expect="fast"), BAD, GOOD, "is pass by the expectation 'fast': want it the other way round"),
        (Criterion(expect="slow"), GOOD, BAD, "--expect 'slow': want an expectation of the plan; there are: fast"),
        (Criterion(metric="jitter"), GOOD, BAD, "want one value (--point ID, --metric FLOW.NAME); there are: none"),
        (Criterion(metric="throughput_bps"), one(speed=None), BAD, "want a number at commit 000000000000; got none"),
    ],
)
def test_ends_that_are_refused(criterion: Criterion, good: Measurement, bad: Measurement, words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        criterion.check_ends(good, bad)


def test_an_end_that_could_not_be_measured() -> None:
    with pytest.raises(TestbedError, match="want pass and fail: the capture dropped packets"):
        Criterion().check_ends(one("invalid", reason="the capture dropped packets"), BAD)
