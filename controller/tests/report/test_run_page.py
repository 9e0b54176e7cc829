# SPDX-License-Identifier: Apache-2.0
"""The page of a run that another testctl, or another person, wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl.report.run_page import Found, run_page
from testctl.results import layout

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
