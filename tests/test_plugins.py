# SPDX-License-Identifier: Apache-2.0
"""What the checks of the whole tree list by name has every distribution of plugins/."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))


def settings(where: Path) -> dict[str, Any]:
    return tomllib.loads((where / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", PLUGINS, ids=lambda place: place.name)
def test_a_distribution_is_checked_as_the_others_are(place: Path) -> None:
    tools = settings(ROOT)["tool"]
    (package,) = (path.parent.name for path in place.glob("src/*/__init__.py"))
    assert package == settings(place)["project"]["name"].replace("-", "_")
    assert package in (place.name, f"testctl_{place.name}")
    assert f"plugins/{place.name}/src" in tools["mypy"]["mypy_path"]
    assert package in tools["importlinter"]["root_packages"]
    (top,) = (one["layers"][0] for one in tools["importlinter"]["contracts"] if "testctl" in one.get("layers", ()))
    assert package in top.split(" | "), "neither the controller nor the agents import it"
    assert list(place.glob("tests/test_*.py"))
