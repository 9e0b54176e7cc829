# SPDX-License-Identifier: Apache-2.0
"""docs/notebook.ipynb, run as its readers run it: beside results/ with a run of one flow, here a short one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest
import testctl

from tests.cli_commands import call

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_notebook_carries_no_outputs_and_no_paths() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
    assert str(ROOT) not in text
    assert "/home/" not in text


@pytest.mark.lab
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of the kernel's client
def test_the_notebook_runs(tmp_path: Path) -> None:
    words = ("--set", "bulk.duration=300ms", "--results", "results")
    done = call(tmp_path, "run", str(ROOT / "plans" / "one_flow.yaml"), *words, code=None)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # so short a flow may not fill the link
    (tmp_path / "docs").mkdir()
    shutil.copy(NOTEBOOK, tmp_path / "docs")
    book = nbformat.read(tmp_path / "docs" / NOTEBOOK.name, as_version=4)
    nbformat.validate(book)
    client = nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path / "docs")}})
    client.execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    shown = [str(output.get("data", {}).get("text/plain", "")) for output in outputs]
    run = testctl.load(tmp_path / "results" / "latest")
    assert repr(run) in shown
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)
    assert any(run.points["point"][0] in text and "goodput_bps" in text for text in shown)
