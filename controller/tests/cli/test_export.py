# SPDX-License-Identifier: Apache-2.0
"""`testctl export RUN POINT`: what it writes, prints and refuses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testctl.exports import write_perfetto
from testctl.results import RunPoint

from controller.tests.support.synthetic_exports import lossy, point_of, recorded, written

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def talk(tmp_path: Path) -> RunPoint:
    return point_of(recorded(tmp_path / "raw", lossy().captures()), tmp_path / "run")


def test_the_command_writes_both_and_packs_what_ends_in_gz(talk: RunPoint, command: Call) -> None:
    run = talk.path.parents[1]
    trace, log = run / "a.pftrace.gz", run / "a.qlog"
    code, out, err = command("export", str(run), "synth", "--perfetto", str(trace), "--qlog", str(log))
    assert (code, err) == (0, "")
    assert (
        out.splitlines()[1]
        == f"{log}: 1 connection, {len(json.loads(log.read_text())['traces'][0]['events'])} events, "
        + out.rpartition(", ")[2].strip()
    )
    assert gzip.decompress(trace.read_bytes()) == written(write_perfetto, talk)
    assert sorted(path.name for path in run.iterdir()) == ["a.pftrace.gz", "a.qlog", "points"]


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ((), "want --perfetto FILE, --qlog FILE or both; got neither"),
        (("--qlog", "{run}/none/a.qlog"), "want a file in an existing directory"),
        (("--qlog", "{run}/points"), "want a file to write; got a directory or a device"),
        (("--qlog", "/dev/null"), "want a file to write; got a directory or a device"),
        (("--qlog", "{run}/x", "--perfetto", "{run}/x"), "want a file for each form; got {run}/x twice"),
        (("--qlog", "{run}/a.qlog", "--flow", "none"), "--flow none: want one of bulk"),
    ],
)
def test_what_can_not_be_exported_is_refused_and_nothing_is_written(
    talk: RunPoint, command: Call, words: tuple[str, ...], want: str
) -> None:
    run = talk.path.parents[1]
    code, out, err = command("export", str(run), "synth", *(word.format(run=run) for word in words))
    assert (code, out) == (2, "")
    assert want.format(run=run) in err
    assert [path.name for path in run.iterdir()] == ["points"]


def test_an_export_that_fails_leaves_the_file_that_was_there(
    talk: RunPoint, command: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("testctl.exports.write_qlog", full)
    run = talk.path.parents[1]
    (run / "a.qlog").write_text("before")
    code, _, err = command("export", str(run), "synth", "--qlog", str(run / "a.qlog"))
    assert (code, (run / "a.qlog").read_text()) == (3, "before")
    assert "no space left on the device; nothing was exported" in err
    assert sorted(path.name for path in run.iterdir()) == ["a.qlog", "points"]
