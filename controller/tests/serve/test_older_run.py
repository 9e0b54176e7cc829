# SPDX-License-Identifier: Apache-2.0
"""A run as the version wrote it that kept collectors' results as text among the notes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from testctl.compare import compare_runs
from testctl.execution.assess import assess
from testctl.results import load_run
from testctl.serve.app import make_app

OLD = Path(__file__).parents[1] / "results" / "fixtures" / "before_types"
RUN = "20261122T192700Z-old_plan"
ALL = {"from": 0, "to": 10**8, "px": 600}


def test_its_metrics_are_computed_again_from_its_records() -> None:
    for point in load_run(OLD / RUN).points:
        records = point.records()
        assert records is not None
        assert records.digest() == point.digest
        assert records.outcome.collected["sender"].keys() == {"capture", "counters", "tcp_events", "tcp_info"}
        assert records.outcome.notes["switch: rate"]
        found = assess(records)
        assert (found.verdict, found.reason) == (point.measured.verdict, point.measured.reason)
        for flow, values in point.metrics.items():
            kept = {name: value for name, value in values.items() if value is not None}
            assert {name: found.metrics[flow][name] for name in kept} == kept
        assert list(found.fates) == list(point.fates) != []


def test_it_is_compared() -> None:
    found = compare_runs(load_run(OLD / RUN), load_run(OLD / RUN))
    assert (found.same, found.differences) == (2, ())


def test_it_is_served(client_of: Callable[[Any], httpx.Client]) -> None:
    app = client_of(make_app(OLD))
    assert [run["name"] for run in app.get("/api/runs").json()["runs"]] == [RUN]
    for point in load_run(OLD / RUN).points:
        answer = app.get(f"/api/runs/{RUN}/points/{point.id}/figures/throughput", params=ALL)
        assert answer.status_code == 200, answer.text
        assert answer.json()["lines"]
