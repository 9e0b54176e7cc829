# SPDX-License-Identifier: Apache-2.0
"""testctl new: a plan to begin with."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from testctl.cli.new import SCHEMA
from testctl.metrics import metric_names
from testctl.plan import load_plan
from testctl.system import checkout
from testctl.system.subprocesses import run

Call = Callable[..., tuple[int, str, str]]


def test_it_loads_and_every_comment_of_it_too(command: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("new", "mine.yaml")[0] == 0
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    assert len(load_plan(tmp_path / "mine.yaml", metrics=metric_names()).points) == 2
    for key in ("repeat", "exclude", "design", "figures"):
        more = [line.removeprefix("# ") for line in text.splitlines() if line.startswith(f"# {key}:")]
        assert len(more) == 1
        load_plan((text + more[0] + "\n").encode(), metrics=metric_names())


def test_an_existing_file_is_not_changed(command: Call, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine\n")
    code, _, said = command("new", str(file))
    assert (code, said) == (2, f"{file}: exists already, and is not changed\n")
    assert file.read_text() == "mine\n"


@pytest.mark.parametrize("name", ["mine", "mine.yml", ".yaml", "", "none/mine.yaml"])
def test_names_that_are_none(command: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, said = command("new", name)
    assert code == 2
    assert "want a file name that ends in .yaml" in said or "can't be written: No such file or directory" in said
    assert list(tmp_path.iterdir()) == []


def test_the_modeline_leads_to_the_schema(command: Call, tmp_path: Path) -> None:
    command("new", str(tmp_path / "mine.yaml"))
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    head = text.splitlines()[0]
    prefix = "# yaml-language-server: $schema="
    assert head.startswith(prefix)
    schema = json.loads((tmp_path / head.removeprefix(prefix)).read_text(encoding="utf-8"))
    assert list(Draft202012Validator(schema).iter_errors(yaml.safe_load(text))) == []


def test_in_the_checkout_the_modeline_is_relative() -> None:
    from testctl.cli.new import modeline

    root = checkout.root()
    assert modeline(root / "plans" / "mine.yaml") == f"# yaml-language-server: $schema=../{SCHEMA}"
    assert (root / SCHEMA).is_file()


@pytest.mark.lab
def test_it_passes_in_the_lab(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "testctl.cli.main"]
    run([*words, "new", "mine.yaml"], cwd=tmp_path)
    run([*words, "run", "mine.yaml", "--out", "run"], cwd=tmp_path, timeout_s=600)
    found = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert [point["verdict"] for point in found["points"]] == ["pass", "pass"]
