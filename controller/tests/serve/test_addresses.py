# SPDX-License-Identifier: Apache-2.0
"""What a run changed of its plan is in the lists; a point's address is the beginning of its id."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from testctl.serve.app import make_app

from controller.tests.serve.conftest import make_run

Client = Callable[[Any], httpx.Client]


def changed(run: Path, **entries: Any) -> None:
    """Write entries into the run's summary, as a run with --set or --without does."""
    path = run / "summary.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    points = found.pop("points")
    path.write_text(json.dumps(found | entries | {"points": points}, indent=1), encoding="utf-8")


def test_set_and_without_are_shown_with_a_run(tmp_path: Path, client_of: Client) -> None:
    plain, other, odd = (make_run(tmp_path, day) for day in (1, 2, 3))
    changed(other, overrides=["hosts.cc=bbr"], left_out=[["hosts", "gro_flush", "10us"]])
    changed(odd, overrides=7, left_out=[["hosts"]])
    app = client_of(make_app(tmp_path))
    want = {plain.name: [], other.name: ["--set hosts.cc=bbr", "--without hosts.gro_flush"], odd.name: []}
    assert {run["name"]: run["overrides"] for run in app.get("/api/runs").json()["runs"]} == want
    assert {run["name"]: run["overrides"] for run in app.get("/api/plans/two").json()["runs"]} == want
    assert {name: app.get(f"/api/runs/{name}").json()["overrides"] for name in want} == want


@pytest.mark.parametrize(("start", "id"), [("loss", "loss"), ("lo", "loss"), ("ack", "ack_owed")])
def test_the_beginning_of_an_id_is_enough(tmp_path: Path, client_of: Client, start: str, id: str) -> None:
    run = make_run(tmp_path, 1)
    answer = client_of(make_app(tmp_path)).get(f"/api/runs/{run.name}/points/{start}")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["id"], answer.json()["name"]) == (id, f"what {id}")


def test_a_beginning_of_none_is_not_found(tmp_path: Path, client_of: Client) -> None:
    run = make_run(tmp_path, 1)
    answer = client_of(make_app(tmp_path)).get(f"/api/runs/{run.name}/points/x")
    assert answer.status_code == 404
    assert "no finished point 'x'" in answer.text
