# SPDX-License-Identifier: Apache-2.0
"""Answers are compressed where the browser reads that, and kept by it while they are the same."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import httpx
import pytest

from controller.tests.serve.conftest import make_run

RUN = "/api/runs/20260101T120000Z-two"
FIGURE = f"{RUN}/points/loss/figures/seq?from=0&to=100000000"


def raw(client: httpx.Client, path: str, accepted: str) -> tuple[httpx.Response, bytes]:
    with client.stream("GET", path, headers={"Accept-Encoding": accepted}) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize("path", [FIGURE, "/static/vega.js", "/static/app.css"])
def test_what_is_large_is_compressed(client: httpx.Client, path: str) -> None:
    plain, body = raw(client, path, "identity")
    small, packed = raw(client, path, "gzip, deflate, br")
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert small.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed) == body
    assert len(packed) < 0.5 * len(body)
    assert raw(client, path, "gzip")[1] == packed


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip; q=0.0, br"])
def test_who_does_not_read_gzip_gets_it_plain(client: httpx.Client, accepted: str) -> None:
    answer, body = raw(client, FIGURE, accepted)
    assert "content-encoding" not in answer.headers
    assert json.loads(body)["lines"]


def test_what_is_small_is_not_compressed(client: httpx.Client) -> None:
    answer, body = raw(client, "/api/runs", "gzip")
    assert "content-encoding" not in answer.headers
    assert json.loads(body)["runs"]


@pytest.mark.parametrize("path", ["/", "/static/main.js", RUN, FIGURE])
def test_what_the_browser_has_is_not_sent_again(client: httpx.Client, path: str) -> None:
    first = client.get(path)
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get(path, headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert client.get(path, headers={"If-None-Match": '"other"'}).content == first.content


def test_what_has_changed_is_sent_and_an_error_is_not_kept(client: httpx.Client, results: Path) -> None:
    first = client.get("/api/runs")
    (run,) = (path for path in results.iterdir() if not path.is_symlink())
    shutil.copytree(run, results / "20260102T120000Z-two")
    again = client.get("/api/runs", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, len(again.json()["runs"])) == (200, 2)
    refused = client.get(f"{RUN}/points/none")
    assert (refused.status_code, refused.headers["cache-control"]) == (404, "no-store")
    assert "etag" not in refused.headers


def test_the_first_difference_of_a_point_in_two_runs(results: Path, client: httpx.Client) -> None:
    less = make_run(results, 2, packets=100).name
    same = make_run(results, 3).name

    def difference(other: str) -> httpx.Response:
        return client.get(f"{RUN}/points/loss/difference", params={"run": other, "point": "loss"})

    found = difference(less).json()
    assert found["words"].startswith(f"packet 100 at {found['time_ns'] / 1e6:.6f} ms, ")
    assert found["words"].endswith(": the second run ended before it")
    assert difference(same).json() == {"words": "the records are the same", "time_ns": None}
    assert difference("").status_code == difference("../../etc").status_code == 404
