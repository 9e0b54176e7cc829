# SPDX-License-Identifier: Apache-2.0
"""A results directory with a run of two points, from captures of real connections."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp
from testctl.metrics import analyse
from testctl.records import load_raw
from testctl.results import PointResult, RunWriter, build_summary, write_point
from testctl.serve.app import make_app

FIXTURES = Path(__file__).parents[1] / "metrics" / "fixtures"
POINTS = {"loss": "fail", "ack_owed": "pass"}


def make_run(
    results: Path, day: int, points: Mapping[str, str] = POINTS, name: str = "two", packets: int | None = None
) -> Path:
    """A complete run of the day, of captures (or their first packets) and their verdicts; its path."""
    writer = RunWriter.create(results, name, now=datetime(2026, 1, day, 12, 0, tzinfo=UTC))
    writer.write_plan("about: two points\n", {})
    for word, verdict in points.items():
        records = load_raw(FIXTURES / word)
        records = replace(records, packets=records.packets.slice(0, packets))
        analysis = analyse(records)
        point = json.loads((FIXTURES / word / "point.json").read_text(encoding="utf-8")) | {"id": word}
        point["tuples"] = [["hosts", "what", word], ["hosts", "cc", "cubic"]]
        write_point(
            writer.path,
            PointResult(point, verdict, code_key="code", reason="", metrics=analysis.metrics, records=records,
                        stalls=analysis.stalls),
        )  # fmt: skip
    versions = {"testctl": "0.1.0", "kernels": {"6.12": "6.12.117"}}
    writer.write_versions(versions)
    started = datetime(2026, 1, day, 12, 0, tzinfo=UTC)
    summary = build_summary(writer.path, plan=name, started=started, wall_s=1.0, versions=versions, order=list(points))
    return writer.finish(summary)


@pytest.fixture
def client_of() -> Iterator[Callable[[ASGIApp], httpx.Client]]:
    """Serves an application on a port of loopback; returns a client of it."""
    running: list[tuple[uvicorn.Server, threading.Thread, httpx.Client]] = []

    def start(app: ASGIApp) -> httpx.Client:
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        client = httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=300, trust_env=False)
        running.append((server, thread, client))
        return client

    yield start
    for server, thread, client in running:
        client.close()
        server.should_exit = True
        thread.join()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results directory with one run, 20260101T120000Z-two."""
    found = tmp_path / "results"
    make_run(found, 1)
    return found


@pytest.fixture
def client(results: Path, client_of: Callable[[ASGIApp], httpx.Client]) -> httpx.Client:
    """A client of a server over the results."""
    return client_of(make_app(results))
