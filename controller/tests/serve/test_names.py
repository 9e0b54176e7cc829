# SPDX-License-Identifier: Apache-2.0
"""Nothing outside of results/ is read, and what is damaged there breaks nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from testctl.serve import listing
from testctl.serve.listing import Unknown
from testctl.serve.runs import Runs
from testctl_agent.spec.errors import PlanError

RUN = "20260101T120000Z-two"
WHOLE = {"from": "0", "to": "1000000000"}


Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def ask(client: httpx.Client) -> Ask:
    """(status, answer) of a server over the results."""

    def one(path: str, **query: str) -> tuple[int, Any]:
        answer = client.get(path, params=query)
        return answer.status_code, answer.json() if answer.headers.get(
            "content-type"
        ) == "application/json" else answer.text

    return one


BAD = ["..", ".", "../..", "../results/" + RUN, "/etc", RUN + "/../" + RUN, "%2e%2e", "a\x00b", "", "*", "[a-z]*",
       RUN + ".in-progress", "x" * 5000]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_strange_names_are_no_runs_and_no_points(ask: Ask, results: Path, name: str) -> None:
    (results.parent / "points").mkdir()
    with pytest.raises(Unknown):
        listing.run_path(results, name)
    with pytest.raises(Unknown):
        listing.point_path(results / RUN, name)
    assert ask(f"/api/runs/{quote(name, safe='')}/points/loss")[0] == 404
    assert ask(f"/api/runs/{RUN}/points/{quote(name, safe='')}/figures/throughput", **WHOLE)[0] == 404


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(max_size=30))
def test_no_name_leaves_the_directory(results: Path, name: str) -> None:
    try:
        found = listing.run_path(results, name)
    except Unknown:
        assert name != RUN
    else:
        assert found == results / RUN


def test_links_are_not_followed(ask: Ask, results: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(results / RUN, outside)
    (results / "20260102T120000Z-linked").symlink_to(outside)
    point = results / RUN / "points" / "loss"
    shutil.copytree(point, outside / "points" / "other")
    (results / RUN / "points" / "other").symlink_to(outside / "points" / "other")
    _, body = ask("/api/runs")
    assert [run["name"] for run in body["runs"]] == [RUN]
    assert ask("/api/runs/20260102T120000Z-linked")[0] == 404
    assert ask(f"/api/runs/{RUN}/points/other")[0] == 404
    packets = point / "packets.parquet"
    packets.rename(tmp_path / "packets.parquet")
    packets.symlink_to(tmp_path / "packets.parquet")
    status, body = ask(f"/api/runs/{RUN}/points/loss")
    assert (status, body["packets"], body["figures"]) == (200, 0, [])
    verdict = point / "verdict.json"
    verdict.rename(tmp_path / "verdict.json")
    verdict.symlink_to(tmp_path / "verdict.json")
    assert ask(f"/api/runs/{RUN}/points/loss")[0] == 400


def test_latest_is_the_run_that_its_link_names(results: Path, tmp_path: Path) -> None:
    assert listing.run_path(results, "latest") == results / RUN
    (results / "latest").unlink()
    shutil.copytree(results / RUN, tmp_path / RUN)
    (results / "latest").symlink_to(tmp_path / RUN)
    with pytest.raises(Unknown):
        listing.run_path(results, "latest")


def test_a_run_in_progress_is_shown_as_such(ask: Ask, results: Path) -> None:
    shutil.copytree(results / RUN, results / "20260103T120000Z-two.in-progress")
    now = results / "20260103T120000Z-two.in-progress"
    (now / "summary.json").unlink()
    shutil.rmtree(now / "points" / "loss")
    (now / "points" / ".being-written").mkdir()
    _, body = ask("/api/runs")
    first = body["runs"][0]
    assert (first["name"], first["state"], first["started"][:10]) == (now.name, "in progress", "2026-01-03")
    assert (first["counts"]["pass"], first["counts"]["not judged yet"]) == (0, 1)
    assert ask(f"/api/runs/{now.name}/points/ack_owed")[1]["verdict"] == "not judged yet"
    status, run = ask(f"/api/runs/{now.name}")
    assert [point["verdict"] for point in run["points"]] == ["not judged yet"]
    assert (status, run["state"], [point["id"] for point in run["points"]]) == (200, "in progress", ["ack_owed"])


def test_new_points_of_a_run_in_progress_are_seen(ask: Ask, results: Path) -> None:
    now = results / "20260103T120000Z-two.in-progress"
    shutil.copytree(results / RUN, now)
    (now / "summary.json").unlink()
    (now / "points" / "loss").rename(results.parent / "loss")
    assert len(ask(f"/api/runs/{now.name}")[1]["points"]) == 1
    (results.parent / "loss").rename(now / "points" / "loss")
    assert len(ask(f"/api/runs/{now.name}")[1]["points"]) == 2
    counts = ask("/api/runs")[1]["runs"][0]["counts"]
    assert counts == {"pass": 0, "fail": 1, "invalid": 0, "skip": 0, "broken": 0, "not judged yet": 1}


@pytest.mark.parametrize("order", [["loss", "ack_owed"], ["ack_owed", "loss"], ["other", "loss"]])
def test_a_run_in_progress_is_in_the_order_of_its_plan(ask: Ask, results: Path, order: list[str]) -> None:
    now = results / "20260103T120000Z-two.in-progress"
    shutil.copytree(results / RUN, now)
    (now / "summary.json").unlink()
    expanded = {"points": [{"id": point} for point in order]}
    (now / "plan.expanded.json").write_text(json.dumps(expanded), encoding="utf-8")
    run = ask(f"/api/runs/{now.name}")[1]
    wanted = [*(point for point in order if point != "other"), *(["ack_owed"] if "other" in order else [])]
    assert [point["id"] for point in run["points"]] == wanted
    assert run["factors"][0]["values"] == [point["at"][0] for point in run["points"]]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"points": 3}', "\x00" * 100, '{"points": [{"id": "loss"}, 7]}', "null"]
)
def test_a_damaged_summary_is_told_and_the_other_runs_are_shown(ask: Ask, results: Path, text: str) -> None:
    bad = results / "20260102T120000Z-bad"
    shutil.copytree(results / RUN, bad)
    (bad / "summary.json").write_text(text, encoding="utf-8")
    status, body = ask("/api/runs")
    assert status == 200
    assert {run["name"]: run["state"] for run in body["runs"]}[RUN] == "complete"
    assert ask(f"/api/runs/{bad.name}")[0] == 200
    assert ask(f"/api/runs/{bad.name}/points/loss")[0] == 200


def test_a_damaged_point_does_not_hide_the_others(ask: Ask, results: Path) -> None:
    run = results / RUN
    (run / "points" / "loss" / "point.json").write_text("{", encoding="utf-8")
    status, body = ask(f"/api/runs/{RUN}")
    assert (status, body["state"], [point["id"] for point in body["points"]]) == (200, "damaged", ["ack_owed"])
    assert "loss" in body["damage"][0]
    assert str(results) not in json.dumps(body)
    packets = run / "points" / "ack_owed" / "packets.parquet"
    packets.write_bytes(packets.read_bytes()[:1000])
    status, body = ask(f"/api/runs/{RUN}/points/ack_owed")
    assert status == 422
    assert "can't be read" in body["error"]
    shutil.rmtree(run / "points" / "ack_owed")
    status, body = ask(f"/api/runs/{RUN}")
    assert (status, body["points"], len(body["damage"])) == (200, [], 2)


def test_an_empty_directory_has_no_runs(tmp_path: Path) -> None:
    assert Runs(listing.check_results(tmp_path)).lines() == []
    with pytest.raises(PlanError, match="there is none"):
        listing.check_results(tmp_path / "none")
    odd = tmp_path / "what[1]"
    odd.mkdir()
    assert Runs(listing.check_results(odd)).lines() == []


@pytest.mark.parametrize(
    "query",
    [{}, {"from": "0"}, {"from": "5", "to": "5"}, {"from": "x", "to": "9"}, {"from": "0", "to": "1e9"},
     {"from": "0", "to": str(10**30)}, {"from": "0", "to": "9", "px": "many"}],
)  # fmt: skip
def test_a_bad_window_is_refused_in_words(ask: Ask, results: Path, query: dict[str, str]) -> None:
    status, body = ask(f"/api/runs/{RUN}/points/loss/figures/throughput", **query)
    assert status == 400
    assert "want" in body["error"]


def test_unknown_figures_and_connections_are_refused(ask: Ask, results: Path) -> None:
    where = f"/api/runs/{RUN}/points/loss/figures/"
    assert ask(where + "none", **WHOLE)[0] == 404
    assert ask(where + "sequence", **WHOLE, lane="x' or 1=1 --/0")[0] == 404
    assert ask("/api/trends/none")[0] == 404
