# SPDX-License-Identifier: Apache-2.0
"""What makes a commit good or bad: the plan's verdict, one expectation, a metric, or the digest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.bisect.measure import Measurement
from testctl.compare.deltas import value_words

Verdict = Literal["good", "bad"]


@dataclass(frozen=True)
class Criterion:
    """By what commits are judged; the fields exclude one another, and none of them is the verdict of the plan.

    expect  the name of an expectation
    metric  the name of a metric, FLOW.NAME where the point has several flows
    digest  whether the records are those of the good commit
    """

    expect: str = ""
    metric: str = ""
    digest: bool = False

    @property
    def words(self) -> str:
        if self.expect:
            return f"expectation {self.expect!r}"
        if self.metric:
            return f"metric {self.metric}"
        return "digest of the records" if self.digest else "verdict of the plan"

    def value(self, of: Measurement) -> float | str:
        """What a commit is judged by.  Raises PlanError when the plan does not give it."""
        if self.expect:
            if self.expect not in of.expectations:
                known = ", ".join(of.expectations) or "none"
                raise PlanError(f"--expect {self.expect!r}: want an expectation of the plan; there are: {known}")
            return of.expectations[self.expect]
        if self.metric:
            flow, _, name = self.metric.rpartition(".")
            by_flow = {
                (point, at): values[name]
                for point, flows in of.metrics.items()
                for at, values in flows.items()
                if name in values and flow in ("", at)
            }
            if len(by_flow) != 1:
                there = ", ".join(f"{flow}.{name} of {point}" for point, flow in by_flow) or "none"
                raise PlanError(
                    f"--metric {self.metric}: want one value (--point ID, --metric FLOW.NAME); there are: {there}"
                )
            (value,) = by_flow.values()
            if not isinstance(value, int | float):
                got = value_words(name, value)
                raise PlanError(f"--metric {self.metric}: want a number at commit {of.commit[:12]}; got {got}")
            return float(value)
        return of.digest if self.digest else of.verdict

    def check_ends(self, good: Measurement, bad: Measurement) -> None:
        """That the two ends differ, and the right way round.  Raises PlanError."""
        ours, theirs = self.value(good), self.value(bad)
        if ours == theirs:
            raise PlanError(
                f"--good {good.commit[:12]} and --bad {bad.commit[:12]} are the same by the {self.words}: "
                f"{self.shown(ours)}; there is nothing to bisect"
            )
        if self.metric or self.digest:
            return
        if theirs == "pass":
            raise PlanError(
                f"--good {good.commit[:12]} is {ours} and --bad {bad.commit[:12]} is pass by the {self.words}: want it "
                "the other way round (for a commit that made it pass: --metric or --digest)"
            )
        if {ours, theirs} != {"pass", "fail"}:
            raise TestbedError(
                f"by the {self.words} --good {good.commit[:12]} is {ours} and --bad {bad.commit[:12]} {theirs}; want "
                f"pass and fail: {good.reason or bad.reason}"
            )

    def judge(self, measurement: Measurement, good: Measurement, bad: Measurement) -> Verdict:
        """A verdict and a digest that are not the good commit's are bad; a number is what it is nearer to."""
        value, ours, theirs = self.value(measurement), self.value(good), self.value(bad)
        if isinstance(value, float) and isinstance(ours, float) and isinstance(theirs, float):
            return "good" if abs(value - ours) < abs(value - theirs) else "bad"
        return "good" if value == ours else "bad"

    def shown(self, value: float | str) -> str:
        """A verdict, the begin of a digest, or a metric's value with its unit."""
        return value[:16] if isinstance(value, str) else value_words(self.metric.rpartition(".")[2], value)
