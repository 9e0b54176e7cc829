# SPDX-License-Identifier: Apache-2.0
"""A real run in a real InfluxDB, through an outage; and every query of every dashboard finds something in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl.metrics import metric_names
from testctl.results import Run
from testctl_influx.credentials import Credentials
from testctl_influx.target import parse_target
from testctl_influx.upload import upload

from plugins.influx.tests.compared import differences, lines_of, options
from plugins.influx.tests.grafana import board, variables
from plugins.influx.tests.influxd import Influxd
from plugins.influx.tests.nights import BOARDS, Nights, call, night, real_run

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def server(server: Influxd) -> Influxd:
    """A running server with an empty database "testctl"."""
    server.make("testctl")
    return server


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, server: Influxd) -> Run:
    """The run, after there is a server to hold it."""
    return real_run(tmp_path_factory.mktemp("real"))


def test_summary_json_is_there_after_two_uploads_and_an_outage(run: Run, server: Influxd, tmp_path: Path) -> None:
    lines = lines_of(run)

    def cut_off() -> Iterator[str]:
        for count, one in enumerate(lines):
            if count == len(lines) // 2:
                server.stop()
            yield one

    first = upload(cut_off(), parse_target(server.url), Credentials(), options(tmp_path, len(lines) // 10))
    assert first.written > 0
    assert first.waiting > 0
    server.start()
    words = ["upload", str(run.path), "--url", server.url, "--spool", str(tmp_path), "--json"]
    done = call(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["replayed"] == first.waiting
    assert differences(run, server) == []
    before = server.dump()
    assert sum(map(len, before.values())) == len(lines), "nothing is lost or doubled"
    done = call(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert server.dump() == before


@pytest.fixture(scope="module")
def real(run: Run, server: Influxd) -> Nights:
    """The real run alone."""
    assert call("upload", str(run.path), "--url", server.url).returncode == 0
    return Nights(server, (run,))


@pytest.fixture(scope="module")
def nights(real: Nights) -> Nights:
    """The real run and two later nightly runs."""
    after = [night(real.runs[0], days) for days in (1, 2)]
    for made in after:
        assert call("upload", str(made.path), "--url", real.server.url).returncode == 0
    return Nights(real.server, (*real.runs, *after))


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_queries_find_what_the_real_run_measured(real: Nights, path: Path) -> None:
    """Silent are only those of metrics that this run has no number for, and differences to a run before."""
    for one in real.silent(path, real.choices(path)):
        asked = set(re.findall(r'"(\w+)"', one)) & set(metric_names())
        assert "difference(" in one or (asked and not asked & real.measured), one


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_query_of_every_dashboard_finds_something(nights: Nights, path: Path) -> None:
    assert nights.measured == set(metric_names())
    choices = nights.choices(path)
    assert nights.silent(path, choices) == []
    for one in variables(board(path)):
        if one["name"] in ("by", "plan", "point"):
            for value in nights.offered(one, choices):
                assert nights.silent(path, choices | {one["name"]: value}) == []
