# SPDX-License-Identifier: Apache-2.0
"""A copy of lab/ and plans/ is whole or not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from testctl.system import checkout
from testctl_agent.spec.errors import PlanError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small root instead of the checkout."""
    place = tmp_path / "root"
    for name in ("lab/kernel/config", "plans/a.yaml"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    monkeypatch.setattr(checkout, "root", lambda: place)
    return place


def names(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def test_both_are_copied(root: Path, tmp_path: Path) -> None:
    checkout.copy_to(tmp_path / "new" / "mine")
    assert names(tmp_path / "new") == ["mine/lab/kernel/config", "mine/plans/a.yaml"]
    with pytest.raises(PlanError, match=r"mine/lab: want a directory without lab and plans; it is there already"):
        checkout.copy_to(tmp_path / "new" / "mine")


def test_an_error_half_way_leaves_nothing(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copytree = shutil.copytree

    def full(source: Path, to: Path, *words: Any, **more: Any) -> Any:
        if Path(source).name == "plans":
            raise shutil.Error([(str(source), str(to), "[Errno 28] No space left on device")])
        return copytree(source, to, *words, **more)

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copytree", full)
        with pytest.raises(PlanError, match=r"mine: can't copy lab/ and plans/ there: \[Errno 28\] No space left"):
            checkout.copy_to(tmp_path / "mine")
    assert names(tmp_path / "mine") == ["notes"]
    checkout.copy_to(tmp_path / "mine")


def test_the_first_is_taken_back_when_the_second_can_not_be_moved(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def refused(old: Path, new: Path) -> None:
        if Path(new).name == "plans":
            raise OSError(39, "Directory not empty")
        rename(old, new)

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(PlanError, match=r"mine: can't copy lab/ and plans/ there: Directory not empty"):
        checkout.copy_to(tmp_path / "mine")
    assert names(tmp_path / "mine") == []
