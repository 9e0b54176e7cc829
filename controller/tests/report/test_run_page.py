# SPDX-License-Identifier: Apache-2.0
"""Runs that another testctl, or another person, wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from testctl.report.run_page import Found, run_page
from testctl.results import layout, load_run

from controller.tests.support.refusal import refusal
from controller.tests.support.synthetic_sweep import make_sweep

HOSTS = {"a": "10.0.0.1", "b": "10.0.0.2"}
FLOW = {"name": "f", "from": "a", "to": "b", "generator": "tgen"}


@pytest.mark.parametrize(("links", "rate"), [([], 1e6), ([["a", "s"], ["b", "s"]], 1e-300)], ids=["links", "rate"])
def test_points_whose_paths_make_no_sense_have_none(links: list[list[str]], rate: float, tmp_path: Path) -> None:
    run = make_sweep(tmp_path)
    topology = {"hosts": HOSTS, "switches": ["s"], "links": links, "ecmp": True}
    point = {"id": run.points[0].id, "flows": [FLOW], "topology": topology, "settings": {"s": {"rate": rate}}}
    (run.path / layout.EXPANDED).write_text(json.dumps({"points": [point]}), encoding="ascii")
    assert run_page(Found(run.path, run.summary, run.points), "")["paths"]["rows"] == []


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"left_out": [["hosts", "tso"]]}, "want a list of 3 at left_out[0]; got 2"),
        ({"noise": 5}, "want an object at noise; got 5"),
        ({"jobs": "two"}, "want an integer of 64 bits at jobs; got 'two'"),
        ({"fail_fast": {"not_run": 2}}, "want a list at fail_fast.not_run; got 2"),
        ({"claims": [{}]}, "want claims[0].plan; it is not there"),
    ],
)
def test_a_summary_of_another_shape_is_refused(entry: dict[str, Any], why: str, tmp_path: Path) -> None:
    run = make_sweep(tmp_path)
    (run.path / layout.SUMMARY).write_text(json.dumps({**run.summary, **entry}), encoding="utf-8")
    assert refusal(load_run, run.path) == f"{run.path / layout.SUMMARY}: {why}"
