# SPDX-License-Identifier: Apache-2.0
"""`testctl serve` beyond loopback wants a token; a browser that has opened the printed address has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli_commands import call
from tests.serve.conftest import serving


def test_beyond_loopback_a_token_is_made_and_wanted(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "0.0.0.0") as lines:
        name, _, query = lines[1].split()[1].partition("?")
        port = name.rstrip("/").rpartition(":")[2]
        token = query.removeprefix("token=")
        assert len(token) >= 32
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert client.get("/api/runs").status_code == 401
            assert client.get("/?token=" + token[:-1]).status_code == 401
            assert client.get(f"/?token={token}").status_code == 303
            assert client.get("/api/runs").status_code == 200
            assert client.get("/api/runs", headers={"Host": "evil.example"}).status_code == 421


def test_a_browser_with_the_token_goes_on_without_it(tmp_path: Path, browser: Any) -> None:
    file = tmp_path / "token"
    file.write_text("the-token-of-this-test-0123", encoding="ascii")
    file.chmod(0o600)
    results = tmp_path / "results"
    results.mkdir()
    with serving(results, "--token-file", str(file)) as lines:
        address = lines[1].split()[1]
        assert "0123" not in "".join(lines)
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        assert "wants a token" in page.locator("body").inner_text()
        page.goto(f"{address}?token=the-token-of-this-test-0123")
        page.wait_for_selector('html[data-drawn="runs"]', state="attached")
        assert page.url == address
        assert "There are no runs here yet" in page.locator("main").inner_text()
        assert page.evaluate("() => document.cookie") == ""
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        context.close()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--results", "none"], "--results none: want a directory of runs"),
        (["--results", ".", "--token-file", "open"], "mode 0600; got 0644"),
        (["--results", ".", "--host", "192.0.2.1"], "can't listen there"),
    ],
)
def test_what_can_not_be_served_is_said(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "open").write_text("the-token-of-this-test-0123", encoding="ascii")
    (tmp_path / "open").chmod(0o644)
    done = call(tmp_path, "serve", *words, code=None)
    assert done.returncode in (2, 3)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
