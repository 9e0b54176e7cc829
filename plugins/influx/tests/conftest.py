# SPDX-License-Identifier: Apache-2.0
"""A server for all tests of a module, and a database of its own for each."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from testctl.records import REQUESTS
from testctl.results import Run, layout

from controller.tests.report.conftest import make_run
from plugins.influx.tests.influxd import Influxd, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A running server."""
    with running(tmp_path_factory.mktemp("influxd")) as made:
        yield made


@pytest.fixture
def influxd(server: Influxd) -> Influxd:
    """A running server with an empty database "testctl"."""
    server.start()
    server.make("testctl")
    return server


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A complete run of 8 points, two of them without records, one with a request; not to be changed."""
    results = tmp_path_factory.mktemp("results")
    made = make_run(results, duration_ns=200_000_000, rate_bps=20e6, thresholds=("30kB",))
    point = next(point for point in made.points if point.has_records)
    row = {"flow": "bulk", "request": 0, "conn": 0, "up": 1, "down": 0, "due_ns": 5, "begin_ns": 5, "end_ns": 10**6}
    pq.write_table(pa.Table.from_pylist([row], REQUESTS), point.path / layout.REQUESTS)
    return made


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the credentials or the server of the user who runs it."""
    for name in list(os.environ):
        if name.startswith("TESTCTL_INFLUX_"):
            monkeypatch.delenv(name)
