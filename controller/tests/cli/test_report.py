# SPDX-License-Identifier: Apache-2.0
"""`testctl report` says whether it wrote the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from controller.tests.support.synthetic_sweep import make_sweep

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_sweep(tmp_path / "results", figures="").path


def test_a_page_that_is_there_is_kept_and_that_is_said(run: Path, command: Call) -> None:
    page = run / "report.html"
    assert command("report", str(run)) == (0, f"{page}\n", "")
    page.write_text("an older page", encoding="utf-8")
    assert command("report", str(run)) == (0, f"{page}\n", "it was there already; --force writes it again\n")
    assert page.read_text(encoding="utf-8") == "an older page"


def test_force_writes_it_again(run: Path, command: Call) -> None:
    page = run / "report.html"
    page.write_text("an older page", encoding="utf-8")
    assert command("report", str(run), "--force") == (0, f"{page}\n", "")
    assert "<title>sweep – testctl</title>" in page.read_text(encoding="utf-8")
