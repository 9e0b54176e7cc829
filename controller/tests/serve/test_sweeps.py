# SPDX-License-Identifier: Apache-2.0
"""What serve answers of a run's sweep, and what the library gives of it: the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import testctl
from starlette.types import ASGIApp
from testctl.results import Run
from testctl.serve.app import make_app
from testctl_agent.spec.errors import PlanError

from controller.tests.support.synthetic_sweep import make_sweep

Client = Callable[[ASGIApp], httpx.Client]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """36 points, three times each."""
    return make_sweep(tmp_path / "results", repeat=3)


@pytest.fixture
def client(run: Run, client_of: Client) -> httpx.Client:
    return client_of(make_app(run.path.parent))


def test_a_run_has_the_figures_of_its_plan_and_what_failures_share(run: Run, client: httpx.Client) -> None:
    found = client.get(f"/api/runs/{run.name}/sweeps").json()
    assert [(one["asked"]["kind"], one["title"]) for one in found["figures"]] == [
        ("metric", "saturation over switch.delay by switch.buffer for each hosts.cc"), ("metric", "Fairness"),
        ("box", "latency_p99_us over switch.delay by hosts.cc"), ("cdf", "throughput_bps by switch.delay"),
    ]  # fmt: skip
    assert found["swept"] == ["hosts.cc", "switch.delay", "switch.buffer"]
    page = client.get(f"/api/runs/{run.name}").json()
    assert [
        (one["verdict"], one["count"], one["rows"][0]["share"], one["rows"][0]["where"]) for one in page["failures"]
    ] == [
        ("fail", "9 of 104", "all 9", [["delay", "30ms"], ["buffer", "15kB"]]),
        ("invalid", "3 of 107", "3 of 9", [["cc", "reno"], ["delay", "3ms"]]),
    ]


def test_a_plan_that_can_not_be_read_gets_the_default_figure(run: Run, client: httpx.Client) -> None:
    (run.path / "plan.yaml").write_text("figures: [{kind: of a later version}]")
    (figure,) = client.get(f"/api/runs/{run.name}/sweeps").json()["figures"]
    asked = {"kind": "metric", "metric": "saturation", "x": "switch.delay", "by": "switch.buffer", "facet": ""}
    assert figure["asked"] == asked


def test_figures_that_need_records_are_asked_for_one_by_one(run: Run, client: httpx.Client) -> None:
    (run.path / "plan.yaml").write_text("figures: [{kind: fct, title: Completion}, {kind: sequence, title: Sequence}]")
    first, second, default = client.get(f"/api/runs/{run.name}/sweeps").json()["figures"]
    assert [first, second] == [{"title": "Completion", "number": 0}, {"title": "Sequence", "number": 1}]
    assert default["asked"]["metric"] == "saturation"
    said = [client.get(f"/api/runs/{run.name}/figures/{n}").json()["data"]["words"]["text"][0] for n in (0, 1)]
    assert said == [
        "no point has requests, or no rate is set on their path",
        "all of its 108 points are pass or fail or invalid or broken",
    ]
    assert client.get(f"/api/runs/{run.name}/figures/2").status_code == 404


def test_any_other_figure_can_be_asked_for(run: Run, client: httpx.Client) -> None:
    asked = {"kind": "metric", "metric": "throughput_bps", "x": "switch.buffer", "by": "hosts.cc", "flow": "bulk"}
    found = client.get(f"/api/runs/{run.name}/sweep", params=asked).json()
    assert found["table"]["heads"] == ["hosts.cc", "switch.buffer 15kB", "60kB", "250kB"]
    assert set(found["data"]["cells"]["x text"]) == {"15kB", "60kB", "250kB"}
    assert found["spec"]["layer"][0]["encoding"]["y"]["title"] == "throughput_bps (Mb/s)"
    for wrong, words in {
        "x": "want a parameter that is swept, of hosts.cc, switch.delay, switch.buffer; got 'nonsense'",
        "metric": "want one that the points have; got 'nonsense'",
        "kind": "want one of metric, cdf, box, heatmap; got 'nonsense'",
        "flow": "want one of bulk; got 'nonsense'",
    }.items():
        answer = client.get(f"/api/runs/{run.name}/sweep", params=asked | {wrong: "nonsense"})
        assert (answer.status_code, answer.json()["error"]) == (400, f"{wrong}: {words}")


def test_a_heatmap_wants_two_parameters(run: Run, client: httpx.Client) -> None:
    asked = {"kind": "heatmap", "metric": "throughput_bps", "x": "switch.buffer", "by": "hosts.cc"}
    found = client.get(f"/api/runs/{run.name}/sweep", params=asked).json()
    assert found["asked"] == asked | {"facet": ""}
    assert len(found["data"]["cells"]["words"]) == 9
    answer = client.get(f"/api/runs/{run.name}/sweep", params=asked | {"by": ""})
    words = "by: want a parameter that is swept, of hosts.cc, switch.delay, switch.buffer; got none"
    assert (answer.status_code, answer.json()["error"]) == (400, words)


def test_the_library_has_the_same_numbers(run: Run) -> None:
    found = testctl.load(run.path).sweep("saturation", "switch.delay", "switch.buffer", "hosts.cc")
    assert list(found.columns) == [
        "hosts.cc", "switch.buffer", "switch.delay", "x", "y", "lo", "hi", "n", "missing",
    ]  # fmt: skip
    assert len(found) == 36
    at = found.set_index(["hosts.cc", "switch.buffer", "switch.delay"])
    row = at.loc[("cubic", "15kB", "10ms")]
    assert (row.x, row.n, row.missing) == (1e7, 3, 0)
    assert (row.lo, row.y, row.hi) == pytest.approx((0.8, 0.8375, 0.875))
    gap = at.loc[("reno", "60kB", "3ms")]
    assert (gap.n, gap.missing, math.isnan(gap.y)) == (0, 3, True)
    words = testctl.load(run.path).sweep("jain", "hosts.cc")
    assert (list(words["hosts.cc"]), words["x"].isna().all()) == (["cubic", "reno", "dctcp"], True)


def test_the_library_has_as_many_rows_as_a_heatmap(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testctl.plan.sweep_figures.MAX_BY", 2)
    assert len(testctl.load(run.path).sweep("saturation", "switch.delay", "switch.buffer")) == 12
    with pytest.raises(PlanError, match="by: want a parameter of at most 2 values"):
        testctl.load(run.path).figure("saturation", "switch.delay", "switch.buffer")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("jain", "switch.rate"), "x: want a parameter that is swept, of hosts.cc, switch.delay, switch.buffer"),
        (("jian", "hosts.cc"), r"metric: want one that the points have; did you mean jain\?; got 'jian'"),
        (("jain", "hosts.cc", "hosts.cc"), "x: want another parameter than by; got 'hosts.cc'"),
        (("jain", ""), "x: want a parameter that is swept, of .*; got none"),
    ],
)
def test_the_library_says_what_there_is(run: Run, asked: tuple[str, ...], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        testctl.load(run.path).sweep(*asked)
