# SPDX-License-Identifier: Apache-2.0
"""`testctl releases` in the lab: two kernels, a plan of two points, pages, and runs that are not made twice."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from testctl.lab.built import built

from tests.cli_commands import call

pytestmark = pytest.mark.lab

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
groups: {ends: [sender, receiver]}
tuples:
  - [ends, cc, [cubic, reno]]
  - [switch:receiver, rate, 100mbit]
  - [switch, delay, 5ms]
  - [bulk, bytes, 300kB]
"""
ENTRIES = """
groups:
  - {name: 6.12 differs, between: ["6.1", "6.12"], key: "*", label: expected, reason: it is another kernel}
  - {name: never, between: ["6.1", "6.12"], key: nothing, label: regression, reason: it does not happen}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if built("6.1") is None or built("6.12") is None:
        pytest.skip("the lab's kernels 6.1 and 6.12 are not built")
    where = tmp_path_factory.mktemp("releases")
    (where / "small.yaml").write_text(PLAN, encoding="utf-8")
    (where / "known.yaml").write_text(ENTRIES, encoding="utf-8")
    (where / "none.yaml").write_text("groups: []", encoding="utf-8")
    return where


def releases(where: Path, *words: str, kernels: str = "6.1,6.12") -> subprocess.CompletedProcess[str]:
    return call(where, "releases", "small.yaml", "--kernels", kernels, "--out", "site", *words, code=None)


def test_groups_pages_and_exit_codes(place: Path) -> None:
    first = releases(place, "--entries", "none.yaml", "--jobs", "2")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "0 regressions, " in first.stdout
    assert ", 0 unknown" not in first.stdout
    assert max(map(len, first.stdout.splitlines())) <= 80
    made = sorted((place / "results").glob("2*"))
    assert len(made) == 2
    (place / "results" / "20990101T000000Z-small").mkdir()  # as a run that was interrupted leaves
    again = releases(place, "--entries", "known.yaml", "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert sorted((place / "results").glob("20[!9]*")) == made, "no point was run again"
    found = json.loads(again.stdout)
    (plan,) = found["plans"]
    assert plan["same"] + plan["differ"] == 2
    assert plan["differ"] == sum(len(group["points"]) for group in found["groups"]) > 0
    assert {group["label"] for group in found["groups"]} == {"expected"}
    assert found["stale"] == ["known.yaml:4:5"]
    assert json.loads((place / "site" / "releases.json").read_text(encoding="utf-8")) == found
    assert len(list((place / "site").glob("*.html"))) == 3


@pytest.mark.parametrize(
    ("kernels", "error"),
    [
        ("6.12", "want two or more, with commas between them; got '6.12'"),
        ("6.12,6.12", "want each kernel once; got 6.12 twice"),
        ("6.12,nothing", "got 'nothing'; build it with: testctl lab build nothing"),
    ],
)
def test_wrong_kernels(place: Path, kernels: str, error: str) -> None:
    ended = releases(place, kernels=kernels)
    assert ended.returncode == 2
    assert error in ended.stderr
    assert "Traceback" not in ended.stderr
