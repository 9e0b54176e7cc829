# SPDX-License-Identifier: Apache-2.0
"""Scorecards below results/: what the list says of them, also of those that can't be read, and their pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from testctl.serve.app import make_app
from testctl.serve.auth import Guard

RUN = "20260101T120000Z-two"
CARD = "20260102T120000Z-certify-vegas"
PAGE = f'<!doctype html><a href="../{RUN}/report.html#/run/{RUN}/point/loss">fail</a>'
Client = Callable[..., httpx.Client]


def certified(**other: Any) -> dict[str, Any]:
    def criterion(level: str, verdict: str) -> dict[str, Any]:
        return {"name": "a", "level": level, "results": {"vegas": {"verdict": verdict}, "reno": {"verdict": "pass"}}}

    criteria = [criterion("MUST", "fail"), criterion("MUST", "pass"), criterion("should", "fail")]
    return {
        "kind": "certify", "cc": "vegas", "kernel": "7.3.4", "started": "2026-01-02T12:00:00+00:00",
        "criteria": criteria, **other,
    }  # fmt: skip


def put(results: Path, name: str, data: str | bytes | None, page: str = PAGE) -> Path:
    directory = results / name
    directory.mkdir()
    (directory / "scorecard.html").write_text(page, encoding="utf-8")
    if data is not None:
        (directory / "scorecard.json").write_bytes(data.encode() if isinstance(data, str) else data)
    return directory


def client_over(results: Path, client_of: Client) -> httpx.Client:
    return client_of(Guard(make_app(results), None))


def test_a_scorecard_is_a_line(results: Path, client_of: Client) -> None:
    put(results, CARD, json.dumps(certified()))
    claims = {"reproduced": 12, "differs": 2, "holds": 0, "fails": 0, "not measured": 0, "else": 7}
    papers: dict[str, Any] = {"started": "2026-01-03T12:00:00+00:00", "kernel": None, "counts": claims, "plans": []}
    put(results, "20260103T120000Z-papers", json.dumps(papers))
    newest, line = client_over(results, client_of).get("/api/scorecards").json()
    assert line == {
        "name": CARD, "kind": "certify", "ccs": ["vegas", "reno"], "counts": [["pass", "1 pass"], ["fail", "2 fail"]],
        "missed": 1, "musts": 2, "kernel": "7.3.4", "started": "2026-01-02T12:00:00+00:00", "damage": "",
    }  # fmt: skip
    assert (newest["kind"], newest["musts"], newest["ccs"]) == ("papers", None, [])
    assert newest["counts"] == [["pass", "12 reproduced"], ["invalid", "2 differs"]]


@pytest.mark.parametrize(
    "data",
    [
        None,
        "",
        "[]",
        "{}",
        '{"criteria": ',
        "[" * 100_000,
        '{"started": NaN}',
        b"\xff\xfe\x00",
        '{"a": "\\ud800"}',
        json.dumps({"criteria": 3}),
        json.dumps(certified(criteria=[{"level": "MUST", "results": ["fail"]}])),
        json.dumps(certified(criteria=[{"level": {}, "results": {}}])),
        json.dumps(certified(cc=["vegas"])),
        json.dumps(certified(started=10**400)),
        json.dumps({"started": "x", "counts": {"holds": "many"}, "plans": []}),
        json.dumps({"started": "x", "counts": {"holds": 10**30}, "plans": []}),
    ],
    ids=lambda data: repr(data)[:30],
)
def test_what_can_not_be_read_is_said_and_the_others_are_listed(
    results: Path, client_of: Client, data: str | bytes | None
) -> None:
    put(results, CARD, json.dumps(certified()))
    put(results, "other", data)
    client = client_over(results, client_of)
    first, second = client.get("/api/scorecards").json()
    assert (first["name"], first["damage"]) == (CARD, "")
    assert (second["name"], second["counts"], second["started"]) == ("other", [], "")
    assert 0 < len(second["damage"]) <= 300
    assert str(results) not in second["damage"]
    assert [run["name"] for run in client.get("/api/runs").json()["runs"]] == [RUN]


def test_texts_of_a_foreign_scorecard_are_cut_and_unknown_words_are_not_counted(
    results: Path, client_of: Client
) -> None:
    results_of = {f"cc{n}": {"verdict": "certainly"} for n in range(1000)}
    data = certified(
        cc="v" * 5000, kernel="7" * 5000, started="soon", criteria=[{"level": "MUST", "results": results_of}]
    )
    put(results, CARD, json.dumps(data))
    (line,) = client_over(results, client_of).get("/api/scorecards").json()
    assert (len(line["ccs"]), len(line["ccs"][0]), len(line["kernel"])) == (30, 100, 100)
    assert (line["counts"], line["missed"], line["musts"], line["started"]) == ([], 1, 1, "")


def test_its_page_can_run_nothing_and_its_links_lead_to_the_pages_of_runs(results: Path, client_of: Client) -> None:
    put(results, CARD, json.dumps(certified()))
    client = client_over(results, client_of)
    got = client.get(f"/scorecards/{CARD}/scorecard.html")
    assert (got.status_code, got.text) == (200, PAGE)
    policy = got.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert not any(word in policy for word in ("script", "connect-src", "'self'", "http"))
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["x-frame-options"] == "DENY"
    led = client.get(f"/scorecards/{RUN}/report.html")
    assert (led.status_code, led.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    "path",
    [
        f"{RUN}/scorecard.html",
        f"{CARD}/scorecard.json",
        f"{CARD}/report.html",
        f"{CARD}/",
        "linked/scorecard.html",
        "page_linked/scorecard.html",
        "none/report.html",
        "%2e%2e/scorecard.html",
        "..%2Fresults%2F" + CARD + "/scorecard.html",
        ".hidden/scorecard.html",
        "%00/scorecard.html",
    ],
)
def test_nothing_else_can_be_read(results: Path, client_of: Client, path: str) -> None:
    card = put(results, CARD, json.dumps(certified()))
    (results / "linked").symlink_to(card)
    (results / "page_linked").mkdir()
    (results.parent / "scorecard.html").write_text("s3cret", encoding="utf-8")
    (results / "page_linked" / "scorecard.html").symlink_to(results.parent / "scorecard.html")
    (results / RUN / "scorecard.html").write_text("s3cret", encoding="utf-8")
    put(results, ".hidden", None, "s3cret")
    client = client_over(results, client_of)
    got = client.get(f"/scorecards/{path}")
    assert got.status_code == 404
    assert "s3cret" not in got.text
    assert [line["name"] for line in client.get("/api/scorecards").json()] == [CARD]


def test_a_scorecard_whose_data_is_a_link_is_not_read(results: Path, client_of: Client) -> None:
    directory = put(results, CARD, None)
    (results.parent / "secret.json").write_text(json.dumps(certified(cc="s3cret")), encoding="utf-8")
    (directory / "scorecard.json").symlink_to(results.parent / "secret.json")
    got = client_over(results, client_of).get("/api/scorecards")
    assert "s3cret" not in got.text
    assert "want a plain file" in got.json()[0]["damage"]


def test_a_large_page_comes_whole_and_large_data_is_refused(results: Path, client_of: Client) -> None:
    directory = put(results, CARD, None, "x" * 3_000_000)
    with (directory / "scorecard.json").open("wb") as file:
        file.truncate(1 << 40)
    client = client_over(results, client_of)
    assert len(client.get(f"/scorecards/{CARD}/scorecard.html").content) == 3_000_000
    assert "want at most 16 MiB" in client.get("/api/scorecards").json()[0]["damage"]
