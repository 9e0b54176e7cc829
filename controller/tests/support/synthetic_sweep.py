# SPDX-License-Identifier: Apache-2.0
"""A run of a sweep with made-up metrics, without records."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testctl.metrics import metric_names
from testctl.plan import Measured, evaluate, load_plan
from testctl.results import PointResult, Run, RunWriter, build_summary, load_run, set_verdict, write_point
from testctl.results.reader import load_point

PLAN = """\
# SPDX-License-Identifier: Apache-2.0
about: a sweep of three parameters
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno, dctcp]]
  - [switch, delay, [1ms, 3ms, 10ms, 30ms]]
  - [switch, buffer, [15kB, 60kB, 250kB]]
  - [switch, rate, 100mbit]
  - [bulk, duration, 1s]
repeat: %d
expect:
  - {name: the link is used, metric: saturation, min: 0.6}
%s"""
FIGURES = """\
figures:
  - {kind: metric, metric: saturation, x: switch.delay, by: switch.buffer, facet: hosts.cc}
  - {kind: metric, title: Fairness, metric: jain, x: hosts.cc, by: switch.buffer}
  - {kind: box, metric: latency_p99_us, x: switch.delay, by: hosts.cc}
  - {kind: cdf, metric: throughput_bps, by: switch.delay, when: {hosts.cc: [cubic, reno]}}
"""
DELAYS = {"1ms": 1, "3ms": 3, "10ms": 10, "30ms": 30}
BUFFERS = {"15kB": 15, "60kB": 60, "250kB": 250}
CCS = {"cubic": 1.0, "reno": 0.8, "dctcp": 1.1}


def values(cc: str, delay: str, buffer: str, repeat: int) -> dict[str, dict[str, Any]]:
    """What a point measures: less of the link is used with a long delay and a small buffer."""
    used = min(CCS[cc] * BUFFERS[buffer] / (2.0 * DELAYS[delay]) * (1 + 0.05 * repeat) + 0.05, 0.97)
    lacking = cc == "reno" and delay == "3ms" and buffer == "60kB"
    flow = {
        "saturation": None if lacking else used,
        "throughput_bps": used * 100e6,
        "latency_p99_us": 100.0 * DELAYS[delay] * (1 + 0.1 * repeat) + BUFFERS[buffer] * CCS[cc],
    }
    return {"bulk": flow, "*": {"jain": 1 - 0.01 * len(cc) * (1 + repeat) / len(buffer)}}


def make_sweep(results: Path, *, repeat: int = 1, figures: str = FIGURES, name: str = "sweep", day: int = 1) -> Run:
    """A complete run of 36 points, times `repeat`; one is broken, and one has no saturation."""
    now = datetime(2026, 1, day, 12, 0, tzinfo=UTC)
    text = PLAN % (repeat, figures)
    plan = load_plan(text, metrics=metric_names())
    writer = RunWriter.create(results, name, now=now)
    writer.write_plan(text, {"points": [point.to_json() for point in plan.points]})
    found: dict[str, Measured] = {}
    for point in plan.points:
        at = {parameter: value for _, parameter, value in point.tuples}
        broken = at["cc"] == "dctcp" and at["delay"] == "1ms" and at["buffer"] == "15kB" and point.repeat == 0
        measured = values(at["cc"], at["delay"], at["buffer"], point.repeat)
        got = Measured("broken", "the lab was killed") if broken else Measured("pass", "", measured)
        found[point.id] = got
        write_point(writer.path, PointResult(point.to_json(), got.verdict, reason=got.reason, metrics=got.metrics))
    verdicts, expectations = evaluate(plan, found)
    for one in verdicts:
        set_verdict(load_point(writer.path / "points" / one.point), one.verdict, one.reason)
    writer.write_versions({})
    summary = build_summary(
        writer.path, plan=name, started=now, wall_s=61.5, versions={}, order=[point.id for point in plan.points],
        expectations=[one.to_json() for one in expectations], about=plan.about,
    )  # fmt: skip
    return load_run(writer.finish(summary))
