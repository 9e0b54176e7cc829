# SPDX-License-Identifier: Apache-2.0
"""A disk that fails at any step of a run: never a complete run that is not whole, always an error that says where."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from testctl.results import PointResult, RunWriter, build_summary, load_point, load_run, set_verdict, write_point
from testctl.results.manifest import difference
from testctl.results.reuse import kept_points, take
from testctl.results.verdict_file import FORMAT
from testctl_agent.spec.errors import TestctlError

from controller.tests.results.powercut import STEPS
from controller.tests.support.few_packets import few_packets

NOW = datetime(2026, 1, 31, 12, 5, 7, tzinfo=UTC)
WORDS = {errno.EIO: "Input/output error", errno.ENOSPC: "no space left on the device"}
CREATING = {errno.EIO: "Input/output error", errno.ENOSPC: "No space left on device"}


def result(point_id: str) -> PointResult:
    point = {"id": point_id, "tuples": [], "flows": []}
    metrics = {"bulk": {"throughput_bps": 1e9}}
    return PointResult(point, "pass", metrics=metrics, records=few_packets(point), code_key="k")


def first(results: Path) -> None:
    """A stopped run, from which the other takes a point."""
    writer = RunWriter.create(results, "p", need=0, now=NOW.replace(hour=1))
    write_point(writer.path, result("aa"))


def whole_run(results: Path) -> None:
    writer = RunWriter.create(results, "p", need=0, now=NOW)
    writer.write_plan("about: x\n", {"points": []})
    take(writer.path, kept_points(results, "aa")[-1], {}, None)  # type: ignore[arg-type]
    write_point(writer.path, result("bb"))
    set_verdict(load_point(writer.path / "points" / "bb"), "fail", "too slow")
    writer.write_versions({"kernel": "6.12"})
    writer.finish(build_summary(writer.path, plan="p", started=NOW, wall_s=3, versions={}))


class Failing:
    """Makes one call of os, or one opening of a file for writing, fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, number: int) -> None:
        self.count = 0
        self._at, self._number = at, number
        for name in (*STEPS, "open"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name), lambda *_: True))
        monkeypatch.setattr(io, "open", self._watched(io.open, lambda path, mode="r", *_: set(mode) & set("wax")))

    def _watched(self, real: Callable[..., Any], counts: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            if counts(*words):
                self.count += 1
                if self.count == self._at:
                    raise OSError(self._number, os.strerror(self._number), str(words[0]))
            return real(*words, **more)

        return call


@pytest.mark.parametrize("number", list(WORDS), ids=errno.errorcode.get)
def test_a_disk_that_fails_at_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the disk of the tests is not what fails
    with monkeypatch.context() as patched:
        first(tmp_path / "counted")
        failing = Failing(patched, 0, number)
        whole_run(tmp_path / "counted")
    steps = failing.count
    assert steps > 60
    said = set()
    for at in range(1, steps + 1):
        results = tmp_path / str(at)
        first(results)
        with monkeypatch.context() as patched:
            Failing(patched, at, number)
            try:
                whole_run(results)
                error = None  # what failed was tidied up or tried in another way
            except TestctlError as caught:
                error = str(caught)
        final = results / "20260131T120507Z-p"
        if error is not None:
            assert WORDS[number] in error or CREATING[number] in error, at
            assert str(results) in error
            said.add(error.rpartition("; ")[2])
        if final.exists():
            assert error is None or "is complete, and this link does not lead to it" in error, at
            found = load_run(final)
            assert [point.id for point in found.points] == ["aa", "bb"], at
            assert [point.verdict for point in found.points] == ["pass", "fail"], at
        else:
            assert error is not None, at
        for verdict in results.glob("2*/points/[!.]*/verdict.json"):
            kept = json.loads(verdict.read_text(encoding="utf-8"))
            assert (kept["format"], difference(verdict.parent, kept["files"])) == (FORMAT, ""), at
    assert len(said) >= 6, said
