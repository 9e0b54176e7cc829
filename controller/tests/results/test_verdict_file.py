# SPDX-License-Identifier: Apache-2.0
"""verdict.json: what was measured and what was judged are apart; older files are read, odd ones are refused."""

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


def test_an_older_file_was_measured_as_it_was_judged() -> None:
    old = VerdictFile.from_json({"id": "a", "verdict": "fail", "reason": "slow"})
    assert old.measured == old.judged == Judgement("fail", "slow")
    assert (old.format, old.files, old.kernel, old.analysis) == (None, None, None, {})


@pytest.mark.parametrize("odd", [{"verdict": "fine"}, {"measured": {"verdict": "fine", "reason": ""}}])
def test_a_verdict_that_is_none_is_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    made = write_point(writer.path, PointResult({"id": "aa01"}, "pass", outcome={"kernel": "6.12.1"}))
    assert load_point(made).kernel == "6.12.1"
    path = made / "verdict.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | odd))
    with pytest.raises(PlanError, match=r"aa01: want .*; got .*fine"):
        load_point(made)


def test_a_judgement_leaves_the_measurement(tmp_path: Path) -> None:
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    before = load_point(write_point(writer.path, PointResult({"id": "aa01"}, "pass", metrics={"bulk": {"loss": 1}})))
    judged = set_verdict(before, "fail", "too slow")
    assert judged == load_point(before.path)
    assert (judged.verdict, judged.verdict_file.judged.reason) == ("fail", "too slow")
    assert judged.measured == before.measured == replace(before.measured, verdict="pass", metrics={"bulk": {"loss": 1}})
