# SPDX-License-Identifier: Apache-2.0
"""A run as lines: the same each time, none written over another, tags of bounded length."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.curves import curves
from testctl.results import Run, load_run
from testctl_agent.spec.errors import PlanError
from testctl_influx.rows import MAX_TAG, machine_tags, parameter_tags, summary_lines, tag

from plugins.influx.tests.compared import lines_of

_SPACE = re.compile(r"(?<!\\) ")


def test_the_same_run_gives_the_same_lines(run: Run) -> None:
    assert lines_of(run, "1ms") == lines_of(load_run(run.path), "1ms")


def test_no_line_is_written_over_another(run: Run) -> None:
    """InfluxDB knows a record by its measurement, tags and time."""
    lines = lines_of(run, "1ms")
    assert len({(_SPACE.split(one)[0], one.rpartition(" ")[2]) for one in lines}) == len(lines)


def test_what_has_too_many_values_for_a_series_is_left_out() -> None:
    from testctl_influx.series import _WRITTEN

    assert set(curves()) - set(_WRITTEN) == {"seq", "tcp", "own_queue"}, "one sample a packet, and what queue has too"


def test_a_run_in_progress_is_refused(run: Run) -> None:
    with pytest.raises(PlanError, match="want a run that is complete"):
        next(summary_lines(replace(run, summary={})))


@given(st.text(), st.text())
def test_tags_are_short_and_stay_apart(one: str, other: str) -> None:
    assert len(tag("x" * 200 + one)) <= MAX_TAG + 1
    long = "x" * MAX_TAG
    if tag(one) != tag(other):
        assert tag(long + tag(one)) != tag(long + tag(other))


def test_a_parameter_that_is_set_twice_is_one_tag() -> None:
    tuples = [("switch", "fate", "lose 1"), ("switch", "fate", "lose 2"), ("ends", "tcp_ecn", 1), ("f", "x", [1, 2])]
    assert parameter_tags(tuples) == {"switch.fate": "lose 1; lose 2", "ends.tcp_ecn": "1", "f.x": "[1, 2]"}


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ("a", {"kernel": "6.1", "cc": "bbr"}),
        ("b", {"kernel": "6.12", "cc": "reno"}),
        ("*", {"kernel": "6.1+6.12", "cc": "bbr+reno"}),
    ],
)
def test_kernel_and_cc_are_the_senders(run: Run, flow: str, said: dict[str, str]) -> None:
    """A flow's own congestion control comes before its host's."""
    asked: dict[str, Any] = {
        "settings": {"h1": {"kernel": "6.1", "cc": "cubic"}, "h2": {"kernel": "6.12", "cc": "reno"}},
        "flows": [{"name": "a", "from": "h1", "options": {"cc": "bbr"}}, {"name": "b", "from": "h2", "options": {}}],
    }
    point = replace(run.points[0])
    point.__dict__["point"] = asked
    assert machine_tags(run, point, flow) == said
