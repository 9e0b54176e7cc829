# SPDX-License-Identifier: Apache-2.0
"""Files of a run: what is listed can be read, nothing else, and a page among them has an origin of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from testctl.serve.app import make_app
from testctl.serve.auth import Guard

NAME = "20260101T120000Z-two"
Client = Callable[..., httpx.Client]


@pytest.fixture
def client(results: Path, client_of: Client) -> httpx.Client:
    """Of the server with its guard."""
    run = results / NAME
    (run / "report.html").write_text("<script>1</script>", encoding="utf-8")
    (run / "linked.json").symlink_to(results.parent / "secret.json")
    (run / "points" / "loss" / "raw").mkdir(exist_ok=True)
    (run / "points" / "loss" / "raw" / "a.pcap").write_bytes(b"\0" * 300_000)
    (run / "データ é.bin").write_bytes(b"7")
    (results.parent / "secret.json").write_text("{}", encoding="utf-8")
    (results / "beside.txt").write_text("s3cret", encoding="utf-8")
    return client_of(Guard(make_app(results), None))


def test_what_is_listed_can_be_read(client: httpx.Client) -> None:
    listed = dict(client.get(f"/api/runs/{NAME}").json()["files"])
    assert {"plan.yaml", "report.html", "summary.json"} <= listed.keys()
    assert not any(name.startswith("points/") or name == "linked.json" for name in listed)
    for name, size in listed.items():
        assert len(client.get(f"/files/{NAME}/{name}").content) == size
    point = dict(client.get(f"/api/runs/{NAME}/points/loss").json()["files"])
    assert point["raw/a.pcap"] == 300_000
    got = client.get(f"/files/{NAME}/points/loss/raw/a.pcap")
    assert got.content == b"\0" * 300_000
    assert got.headers["content-disposition"] == 'attachment; filename="a.pcap"'
    got = client.get(f"/files/{NAME}/データ é.bin")
    assert (got.content, got.headers["content-disposition"]) == (b"7", 'attachment; filename="_____.bin"')


def test_a_page_of_a_run_has_an_origin_of_its_own(client: httpx.Client) -> None:
    got = client.get(f"/files/{NAME}/report.html")
    assert got.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" not in client.get("/").headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "linked.json",
        "%2e%2e/beside.txt",
        "..%2Fbeside.txt",
        "points/%2e%2e/summary.json",
        "points/loss/%2e%2e/%2e%2e/summary.json",
        "points/none/point.json",
        "points/loss/",
        "points",
        "",
        "%00",
        "/etc/passwd",
    ],
)
def test_nothing_else_can_be_read(client: httpx.Client, path: str) -> None:
    got = client.get(f"/files/{NAME}/{path}")
    assert got.status_code == 404
    assert "s3cret" not in got.text
    assert "{" not in got.text


def test_a_run_that_is_not_there(client: httpx.Client) -> None:
    assert client.get("/files/none/plan.yaml").status_code == 404
    assert client.get("/files/..%2F/plan.yaml").status_code == 404
