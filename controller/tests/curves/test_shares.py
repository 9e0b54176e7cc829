# SPDX-License-Identifier: Apache-2.0
"""Fairness and marks over time: shares of parts of a point's time."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.curves import Window, curves, figure, figures, series
from testctl.metrics.core.view import view
from testctl.records import Records, load_raw

from controller.tests.support.synthetic import Conversation, joined, write_point

MSS = 1000


def point(where: Path, *talks: Conversation) -> Records:
    captures = {end: joined([talk.captures()[end] for talk in talks]) for end in ("sender", "receiver")}
    return load_raw(write_point(where, captures, parallel=len(talks)))


def talk(conn: int, at_us: list[float], marked: int = 0) -> Conversation:
    """A packet at each time, the first `marked` of them with CE."""
    made = Conversation(conn=conn)
    for number, at in enumerate(at_us):
        made.data(at, MSS * number, MSS, ecn=3 if number < marked else 2)
    return made


def test_two_that_get_the_same_are_fair_and_one_alone_is_not_judged(tmp_path: Path) -> None:
    """Until 10 ms both send a packet each 100 µs; then the second one a tenth of that, and then the first alone."""
    first = talk(0, [100.0 * n for n in range(1, 400)])
    second = talk(1, [100.0 * n for n in range(1, 100)] + [1000.0 * n for n in range(10, 31)])
    records = point(tmp_path, first, second)
    table = series(records, "bulk", "fairness", 0).to_pydict()
    width = table["time_ns"][1] - table["time_ns"][0]
    assert width == 1_000_000
    early = [jain for at, jain in zip(table["time_ns"], table["jain"], strict=True) if 1_000_000 <= at < 9_000_000]
    assert min(early) > 0.98
    late = [jain for at, jain in zip(table["time_ns"], table["jain"], strict=True) if 11_000_000 <= at < 29_000_000]
    assert max(late) < 0.75
    assert set(table["connections"]) == {2}
    assert table["time_ns"][-1] == 29_000_000, "the second one's data ends in the next"
    (line,) = curves()["fairness"].lines(view(records, "bulk"), 0)
    assert line.value.max() <= 1_000_000


def test_bins_have_the_mean_of_their_parts(tmp_path: Path) -> None:
    both = [talk(conn, [100.0 * n for n in range(1, 305)]) for conn in (0, 1)]
    records = point(tmp_path, *both)
    whole, binned = (series(records, "bulk", "fairness", width) for width in (0, 5_000_000))
    assert binned.num_rows == 6
    parts = [jain for at, jain in zip(whole["time_ns"].to_pylist(), whole["jain"].to_pylist(), strict=True)
             if at // 5_000_000 == 1]  # fmt: skip
    assert binned["jain"].to_pylist()[1] == pytest.approx(sum(parts) / len(parts))
    assert len(parts) == 5


def test_marks_are_a_share_of_what_arrives(tmp_path: Path) -> None:
    records = point(tmp_path, talk(0, [100.0 * n for n in range(1, 401)], marked=100))
    table = series(records, "bulk", "marks", 0).to_pydict()
    assert sum(table["packets"]) == 400
    assert sum(share * count for share, count in zip(table["ce_share"], table["packets"], strict=True)) == 100
    assert table["ce_share"][5] == 1
    assert table["ce_share"][-1] == 0
    drawn = figure(records, "marks", ("bulk", 0), Window(0, 41_000_000, 600))
    assert drawn["lines"][0]["name"] == "bulk"
    assert max(drawn["lines"][0]["y"]) == 1_000_000


@pytest.mark.parametrize(("conns", "marked", "there"), [(1, 0, set()), (2, 0, {"fairness"}), (1, 1, {"marks"})])
def test_which_points_have_them(tmp_path: Path, conns: int, marked: int, there: set[str]) -> None:
    records = point(tmp_path, *(talk(conn, [100.0, 200.0], marked) for conn in range(conns)))
    assert {"fairness", "marks"} & set(figures(records)) == there
    assert series(point(tmp_path / "empty", talk(0, [])), "bulk", "marks", 1000).num_rows == 0
