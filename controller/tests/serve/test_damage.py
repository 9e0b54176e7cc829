# SPDX-License-Identifier: Apache-2.0
"""A damaged run is marked, and all others are shown; requests are bounded; other sites get nothing."""

from __future__ import annotations

import json
import random
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from testctl.serve.app import make_app
from testctl.serve.auth import Guard
from testctl.serve.cache import Cache

from controller.tests.support.odd_json import mutated

RUN = "20260101T120000Z-two"
BAD = "20260102T120000Z-two"
DEEP = "[" * 100_000


@pytest.fixture
def bad(results: Path) -> Path:
    shutil.copytree(results / RUN, results / BAD)
    return results / BAD


@pytest.fixture
def client(results: Path, client_of: Callable[[Any], httpx.Client]) -> httpx.Client:
    return client_of(Guard(make_app(results), None, []))


def all_is_said(client: httpx.Client) -> None:
    lines = {line["name"]: line for line in client.get("/api/runs").raise_for_status().json()["runs"]}
    assert lines[RUN]["state"] == "complete"
    assert BAD in lines
    for path in (f"/api/runs/{BAD}", f"/api/runs/{BAD}/points/loss", f"/api/runs/{BAD}/values?metric=goodput_bps"):
        assert client.get(path).status_code in (200, 400, 404, 422)


@pytest.mark.parametrize("file", ["summary.json", "points/loss/verdict.json", "points/loss/point.json",
                                  "points/loss/metrics.json", "points/loss/records.json"])  # fmt: skip
def test_the_others_are_shown(client: httpx.Client, bad: Path, file: str) -> None:
    path, draw = bad / file, random.Random(file)
    whole = json.loads(path.read_text())
    odd = [DEEP, "{" + f'"plan": {DEEP}', '{"plan": "\\ud800", "points": []}', '{"id": "\\ud800"}', "null", "5", "",
           json.dumps(whole)[:-9]]  # fmt: skip
    for text in [*odd, *(json.dumps(mutated(whole, draw)) for _ in range(25))]:
        path.write_text(text)
        all_is_said(client)


def test_texts_of_columns_are_shown_without_what_a_page_acts_on(client: httpx.Client, bad: Path) -> None:
    odd = "\x1b]0;mine\x07\x9b2J\u202ex"
    for path, columns in ((bad / "points/loss/stalls.parquet", ("proof", "flow")),
                          (bad / "points/loss/packets.parquet", ("where",))):  # fmt: skip
        table = pq.read_table(path)
        for name in columns:
            field = table.schema.field(name)
            texts = pa.array([odd] * len(table)).cast(field.type)
            table = table.set_column(table.schema.get_field_index(name), field, texts)
        pq.write_table(table, path)
    at = f"/api/runs/{BAD}/points/loss"
    for asked in (at, f"{at}/packets?from=0&to=1000000000"):
        answer = client.get(asked).raise_for_status()
        assert "�]0;mine��2J�x" in answer.text
        assert not any(bad in answer.text for bad in ("\\u001b", "\\u0007", "\x9b", "\u202e"))


def test_a_run_in_progress_with_a_damaged_point(client: httpx.Client, bad: Path) -> None:
    (bad / "summary.json").unlink()
    moved = bad.rename(bad.with_name(BAD + ".in-progress"))
    (moved / "points" / "loss" / "verdict.json").write_text(DEEP)
    lines = client.get("/api/runs").raise_for_status().json()["runs"]
    assert {line["state"] for line in lines} == {"damaged", "complete"}


def test_many_stalls_are_counted_and_the_longest_shown(client: httpx.Client, bad: Path) -> None:
    path = bad / "points" / "loss" / "stalls.parquet"
    count = 300_000
    rows = pq.read_table(path).take(pa.array([0] * count))
    index = rows.schema.get_field_index("length_ns")
    rows = rows.set_column(index, "length_ns", pa.array(range(count), rows.schema.field(index).type))
    pq.write_table(rows, path)
    tracemalloc.start()
    try:
        said = client.get(f"/api/runs/{BAD}/points/loss").raise_for_status().json()["stalls"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said["in_all"] == count
    assert len(said["rows"]) == 1000
    assert peak < 50e6  # bytes; rows that are not shown are not fetched


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({}, "/api/runs", 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, "/api/runs", 200),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, "/api/runs", 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, "/", 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, "/api/runs", 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, "/api/runs", 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, "/", 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, "/api/runs", 403),
        ({"Sec-Fetch-Site": "cross-site"}, "/static/main.js", 403),
    ],
)
def test_other_sites_have_nothing_looked_up(
    client: httpx.Client, headers: dict[str, str], path: str, status: int
) -> None:
    assert client.get(path, headers=headers).status_code == status


def test_what_can_not_be_made_is_not_remembered() -> None:
    """A visitor may ask for as many names as he likes."""

    def fails() -> None:
        raise KeyError("none")

    cache = Cache(2)
    for name in range(100):
        with pytest.raises(KeyError, match="none"):
            cache.get(name, 1, fails)
    assert not cache._making
