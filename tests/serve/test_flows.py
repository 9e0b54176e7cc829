# SPDX-License-Identifier: Apache-2.0
"""Several flows and connections of the lab: one colour and one dash in every picture, on both sides of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.serve.conftest import run, serving

pytestmark = [pytest.mark.lab, pytest.mark.long]

PLAN = """
about: two flows, of which one or the other sends more
topology: pair
flows: {bulk: sender -> receiver, other: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [bulk, parallel, 2]
  - [switch:receiver, rate, 50mbit]
  - [switch, delay, 2ms]
  - [bulk, bytes, [40kB, 400kB]]
  - [other, bytes, [40kB, 400kB]]
exclude:
  - {bulk.bytes: 40kB, other.bytes: 40kB}
  - {bulk.bytes: 400kB, other.bytes: 400kB}
"""
SOLID, DASHED = [1, 0], [6, 3]
DRAWN = "name => [...document.querySelectorAll('[data-figure=rtt]')].every(({ chart }) => chart.legend[0][0] === name)"
"""Whether the round-trip times of this connection are drawn on both sides."""


@dataclass(frozen=True)
class Swapped:
    """A run of two points: in each the other flow sends more."""

    address: str
    run: Path
    points: list[str]


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swapped]:
    results = tmp_path_factory.mktemp("flows") / "results"
    results.mkdir()
    path = run(results, "flows", PLAN)
    points = [point["id"] for point in json.loads((path / "summary.json").read_text(encoding="utf-8"))["points"]]
    assert len(points) == 2
    with serving(results) as lines:
        yield Swapped(lines[1].split()[1], path, points)


def legends(page: Any, figure: str) -> list[list[tuple[str, str, list[int]]]]:
    """Of each figure of a name: (label, colour, dash) of its lines."""
    script = "all => all.map(({ chart }) => chart.legend)"
    found = page.locator(f'[data-figure="{figure}"]').evaluate_all(script)
    return [[(label, colour, dash) for label, colour, dash in legend] for legend in found]


def test_both_sides_of_a_comparison_show_the_same_connection_in_its_colour(open_shown: Any, swapped: Swapped) -> None:
    first, second = (f"{swapped.run.name}/{point}" for point in swapped.points)
    page = open_shown(f"{swapped.address}#/compare?a={first}&b={second}", "all")
    colours = {label: colour for label, colour, _ in legends(page, "throughput")[0]}
    assert colours["bulk/0"] == colours["bulk/1"] != colours["other/0"]
    for chosen in ("bulk/0", "other/0"):
        page.get_by_role("combobox", name="connection", exact=True).select_option(chosen)
        page.wait_for_function(DRAWN, arg=chosen)
        for figure in ("throughput", "seq", "rtt"):
            left, right = legends(page, figure)
            assert left == right
        assert legends(page, "rtt") == [[(chosen, colours[chosen], SOLID)]] * 2


@pytest.mark.parametrize("of", ["serve", "report"])
def test_each_connection_of_a_flow_has_a_line_of_its_own(open_shown: Any, swapped: Swapped, of: str) -> None:
    point = swapped.points[0]
    served = f"{swapped.address}#/run/{swapped.run.name}/point/{point}"
    page = open_shown(served if of == "serve" else f"{(swapped.run / 'report.html').as_uri()}#p-{point}", "all")
    (lines,) = legends(page, "throughput")
    assert [(label, dash) for label, _, dash in lines] == [("bulk/0", SOLID), ("bulk/1", DASHED), ("other/0", SOLID)]
