# SPDX-License-Identifier: Apache-2.0
"""verdict.json: what was measured and what was judged are apart; odd files, and other formats, are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.plan import Judgement
from testctl.results import PointResult, RunWriter, load_point, set_verdict, write_point
from testctl.results.verdict_file import VerdictFile
from testctl_agent.spec.errors import PlanError

FILE = VerdictFile(
    id="aa01",
    judged=Judgement("fail", "too slow"),
    measured=Judgement("pass"),
    digest="d",
    code_key="k",
    analysis={"records": "r", "metrics": "m"},
    wall_s=1.5,
    virtual_s=2.0,
    kernel="6.12.1",
    files={"point.json": {"size": 3, "sha256": "ab"}},
    reused_from="20260131T120507Z-p",
)


@pytest.mark.parametrize("file", [FILE, replace(FILE, reused_from="", kernel="", files={}), replace(FILE, kernel=None)])
def test_what_is_written_is_read(file: VerdictFile) -> None:
    written = json.loads(json.dumps(file.to_json()))
    assert VerdictFile.from_json(written) == file
    assert (written["verdict"], written["reason"], written["measured"]["verdict"]) == ("fail", "too slow", "pass")
    assert ("reused_from" in written, "kernel" in written) == (bool(file.reused_from), file.kernel is not None)


@pytest.mark.parametrize("odd", [{"verdict": "fine"}, {"measured": {"verdict": "fine", "reason": ""}}])
def test_a_verdict_that_is_none_is_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    made = write_point(writer.path, PointResult({"id": "aa01"}, "pass", outcome={"kernel": "6.12.1"}))
    assert load_point(made).kernel == "6.12.1"
    path = made / "verdict.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | odd))
    with pytest.raises(PlanError, match=r"aa01: want .*; got .*fine"):
        load_point(made)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"format": 2}, r"aa01/verdict\.json: format: want 1; got 2: another version of testctl wrote it"),
        ({"format": None}, r"aa01/verdict\.json: format: want 1; got None: another version of testctl wrote it"),
        ({"measured": None}, r"aa01/verdict\.json: .*measured.*"),
        ({"digest": None}, r"aa01/verdict\.json: .*digest.*"),
    ],
)
def test_a_file_of_another_format_is_refused(tmp_path: Path, change: dict[str, Any], error: str) -> None:
    made = write_point(RunWriter.create_at(tmp_path / "run", need=0).path, PointResult({"id": "aa01"}, "pass"))
    path = made / "verdict.json"
    path.write_text(json.dumps({k: v for k, v in (json.loads(path.read_text()) | change).items() if v is not None}))
    with pytest.raises(PlanError, match=error):
        load_point(made)


def test_a_judgement_leaves_the_measurement(tmp_path: Path) -> None:
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    before = load_point(write_point(writer.path, PointResult({"id": "aa01"}, "pass", metrics={"bulk": {"loss": 1}})))
    judged = set_verdict(before, "fail", "too slow")
    assert judged == load_point(before.path)
    assert (judged.verdict, judged.verdict_file.judged.reason) == ("fail", "too slow")
    assert judged.measured == before.measured == replace(before.measured, verdict="pass", metrics={"bulk": {"loss": 1}})
