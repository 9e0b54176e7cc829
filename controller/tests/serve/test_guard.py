# SPDX-License-Identifier: Apache-2.0
"""Who may ask, and under which name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from testctl.serve.app import make_app
from testctl.serve.auth import Guard, is_loopback
from testctl.serve.server import read_token
from testctl_agent.spec.errors import PlanError

TOKEN = "a-token-of-the-test-0123456789"


@pytest.fixture
def ask(results: Path, client_of: Callable[[Any], httpx.Client]) -> Callable[..., httpx.Client]:
    """A client of a guarded server over the results."""

    def start(token: str | None = None, *, addresses: bool = False) -> httpx.Client:
        return client_of(Guard(make_app(results), token, ["lab1"], addresses=addresses))

    return start


@pytest.mark.parametrize("host", ["127.0.0.1:8042", "localhost:9000", "[::1]:8042", "127.0.0.1", "LAB1:8042", "lab1."])
def test_its_own_names_are_served(ask: Callable[..., httpx.Client], host: str) -> None:
    assert ask().get("/api/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8042", "127.0.0.1.evil.example", "10.0.0.7:8042", "", "lab12"]
)
def test_other_names_are_refused(ask: Callable[..., httpx.Client], host: str) -> None:
    answer = ask().get("/api/runs", headers={"Host": host})
    assert answer.status_code == 421
    assert "runs" not in answer.text


def test_beyond_loopback_addresses_are_names_and_strange_names_are_not(ask: Callable[..., httpx.Client]) -> None:
    asked = ask(addresses=True)
    assert asked.get("/", headers={"Host": "10.0.0.7:8042"}).status_code == 200
    assert asked.get("/", headers={"Host": "evil.example"}).status_code == 421


def test_without_the_token_nothing_is_told(ask: Callable[..., httpx.Client]) -> None:
    asked = ask(TOKEN)
    for path in ("/", "/api/runs", "/static/main.js", "/?token=", "/?token=wrong", f"/api/runs?token={TOKEN}"):
        answer = asked.get(path)
        assert answer.status_code == 401, path
        assert "two" not in answer.text
        assert "set-cookie" not in answer.headers
    assert asked.get("/api/runs", headers={"Cookie": "testctl=1"}).status_code == 401


def test_the_token_becomes_a_cookie_that_is_not_the_token(ask: Callable[..., httpx.Client]) -> None:
    asked = ask(TOKEN)
    answer = asked.get(f"/?token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert TOKEN not in cookie
    assert asked.get("/api/runs").json()["runs"][0]["plan"] == "two"
    other = ask(TOKEN[::-1])
    other.cookies.update(asked.cookies)
    assert other.get("/api/runs").status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_it_can_only_be_read(ask: Callable[..., httpx.Client], method: str) -> None:
    assert ask().request(method, "/api/runs").status_code == 405


def test_every_answer_has_the_headers(ask: Callable[..., httpx.Client]) -> None:
    asked = ask(TOKEN)
    refused = asked.get("/")
    asked.get(f"/?token={TOKEN}")
    for answer in (
        refused,
        asked.get("/"),
        asked.get("/api/runs"),
        asked.get("/api/none"),
        asked.get("/static/vega.js"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_loopback() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""))


def test_a_token_file_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n", encoding="ascii")
    path.chmod(0o600)
    assert read_token(path) == TOKEN
    path.chmod(0o640)
    with pytest.raises(PlanError, match="want a file of yours with mode 0600; got 0640"):
        read_token(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    for bad in (link, tmp_path / "none", tmp_path):
        with pytest.raises(PlanError, match="--token-file"):
            read_token(bad)
    short = tmp_path / "short"
    os.close(os.open(short, os.O_CREAT, 0o600))
    with pytest.raises(PlanError, match="at least 16"):
        read_token(short)
