# SPDX-License-Identifier: Apache-2.0
"""Runs of a deterministic testbed: which points, which metrics, which packet."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from testctl.compare import check_alike, compare_runs, open_run, print_comparison
from testctl.compare.packet import first_difference
from testctl.metrics import metric_names
from testctl.records import REQUESTS
from testctl_agent.spec.errors import PlanError

from controller.tests.compare.written import TUPLES, Given, write_run

POINT = Given()


def test_equal_runs_have_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (write_run(tmp_path / name, [POINT, replace(POINT, id="a1", repeat=1)]) for name in "ab")
    found = compare_runs(a, b)
    assert (found.differs, found.worse, found.same) == (False, False, 2)
    print_comparison(found, Console())
    assert capsys.readouterr().out == "no difference: 2 points with the same digests\n"


def test_metrics_say_whether_they_got_better(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [POINT])
    slower = replace(POINT, metrics={"throughput_bps": 0.5e9, "wire_bytes": 900, "new_one": 3}, packets=[{}, {}])
    found = compare_runs(a, write_run(tmp_path / "b", [slower]))
    (one,) = found.differences
    assert [(m.metric, m.relative, m.direction) for m in one.moves] == [
        ("throughput_bps", -0.5, "worse"),
        ("wire_bytes", -0.1, "other"),
    ]
    assert (found.worse, one.direction, found.metrics_b) == (True, "worse", ("new_one",))
    back = compare_runs(open_run(tmp_path / "b"), a)
    assert (back.worse, back.differs, back.differences[0].direction) == (False, True, "better")
    assert not compare_runs(a, open_run(tmp_path / "b"), least=0.6).worse


def one_direction(where: Path, before: Given, after: Given, **more: Any) -> tuple[str, bool]:
    """Of the only point: its direction, and whether the run is worse."""
    found = compare_runs(write_run(where / "a", [before], **more), write_run(where / "b", [after], **more))
    assert found.differs
    return found.differences[0].direction, found.worse


EXPECTED = {"expectations": [{"name": "short", "metric": "rtt_max_us", "verdict": "pass"}]}


@pytest.mark.parametrize(
    ("before", "after", "more", "want"),
    [
        ({"rtt_max_us": 7.0, "drops": 3}, {"rtt_max_us": 8.0, "drops": 2}, {}, "other"),  # neither decides
        ({"rtt_max_us": 7.0, "drops": 3}, {"rtt_max_us": 8.0, "drops": 2}, EXPECTED, "worse"),
        ({"throughput_bps": 2.0, "rtt_max_us": 7.0}, {"throughput_bps": 3.0, "rtt_max_us": 8.0}, {}, "better"),
        ({"throughput_bps": 2.0, "rtt_max_us": 8.0}, {"throughput_bps": 1.0, "rtt_max_us": 7.0}, EXPECTED, "worse"),
        ({"fct_all_p99_us": 2.0, "drops": 3}, {"fct_all_p99_us": 3.0, "drops": 2}, {}, "worse"),
    ],
)
def test_a_point_is_worse_by_what_decides_it(
    tmp_path: Path, before: dict[str, float], after: dict[str, float], more: dict[str, Any], want: str
) -> None:
    points = [replace(POINT, metrics=metrics) for metrics in (before, after)]
    assert one_direction(tmp_path, *points, **more) == (want, want == "worse")


def test_a_better_verdict_hides_no_metric_that_decides(tmp_path: Path) -> None:
    failed, now = replace(POINT, verdict="fail"), replace(POINT, verdict="pass")
    assert one_direction(tmp_path / "passes", failed, now) == ("better", False)
    slower = replace(now, metrics={"throughput_bps": 0.5e9})
    assert one_direction(tmp_path / "slower", failed, slower) == ("worse", True)
    assert one_direction(tmp_path / "fails", now, replace(failed, metrics={"throughput_bps": 2e9})) == ("worse", True)


def test_a_shorter_wait_of_the_application_is_no_improvement(tmp_path: Path) -> None:
    waits = {"stall_longest_ms": 9.0, "stall_application_longest_ms": 9.0, "stall_rto_longest_ms": 0.0}
    point, less = replace(POINT, metrics=waits), waits | {"stall_longest_ms": 5.0, "stall_application_longest_ms": 5.0}
    assert one_direction(tmp_path / "own", point, replace(point, metrics=less)) == ("other", False)
    timeout = less | {"stall_rto_longest_ms": 5.0}
    assert one_direction(tmp_path / "timeout", point, replace(point, metrics=timeout)) == ("better", False)
    expected = {"expectations": [{"name": "short", "metric": "stall_longest_ms", "verdict": "pass"}]}
    assert one_direction(tmp_path / "expected", point, replace(point, metrics=less), **expected) == ("better", False)


def test_what_the_points_that_differ_share_is_said_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuples = [[*TUPLES, ("hosts", "cc", cc), ("all", "mtu", mtu)] for cc in ("cubic", "reno") for mtu in (1500, 9000)]
    points = [replace(POINT, id=f"p{place}", tuples=own) for place, own in enumerate(tuples)]
    changed = [replace(point, packets=[{}, {}]) if point.id >= "p2" else point for point in points]
    found = compare_runs(write_run(tmp_path / "a", points), write_run(tmp_path / "b", changed))
    assert found.shared == "all 2 with cc=reno"
    print_comparison(found, Console())
    assert capsys.readouterr().out.splitlines()[:2] == [
        "2 points are the same, 2 differ: 0 worse, 0 better, 2 neither",
        "those that differ: all 2 with cc=reno",
    ]


def test_80_columns_show_what_was_asked_with_units(tmp_path: Path) -> None:
    """No name is broken inside a word, no line is wider than the terminal, and the expected metric is the first."""
    names = [name for name, info in metric_names().items() if not info.name.startswith("kernel_")]
    before = {name: 100.0 + place for place, name in enumerate(names)} | {"throughput_bps": 979_805_000.0}
    after = {name: 0.99272 * value for name, value in before.items()} | {"throughput_bps": 572_123_000.0}
    expectations = [{"name": "fair", "metric": "jain", "verdict": "pass"}]
    runs = [
        write_run(tmp_path / name, [replace(POINT, metrics=values)], expectations=expectations)
        for name, values in (("a", before | {"jain": 1.0}), ("b", after | {"jain": 0.5}))
    ]
    printed = StringIO()
    print_comparison(compare_runs(*runs), Console(file=printed, width=80), everything=True)
    lines = printed.getvalue().splitlines()
    rows = [line.split() for line in lines[lines.index(next(x for x in lines if x.split()[:1] == ["flow"])) + 1 :]]
    assert rows[0][:4] == ["bulk", "jain", "1", "0.5"]
    assert rows[2][:6] == ["bulk", "throughput_bps", "979.805", "Mb/s", "572.123", "Mb/s"]
    assert max(map(len, lines)) <= 80
    parts = {word for row in rows for word in row}
    halves = {name: {name.removeprefix(part) for part in parts if part.endswith("_")} for name in names}
    assert [name for name in names if name not in parts and not halves[name] & parts] == []


def test_names_of_a_foreign_run_are_text(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / name, [replace(POINT, metrics={"[/a]": value})]) for name, value in (("a", 1), ("b", 2))
    ]
    printed = StringIO()
    print_comparison(compare_runs(*runs), Console(file=printed, width=80))
    assert " bulk  [/a]    1" in printed.getvalue()


def test_the_first_packet_that_differs_is_named(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [replace(POINT, packets=[{"tsval": 7}, {"flow": "other"}, {"seq": 5}, {"seq": 9}])])
    b = write_run(tmp_path / "b", [replace(POINT, packets=[{"tsval": 8}, {"flow": "other"}, {"seq": 6, "ecn": 3}, {}])])
    (one,) = compare_runs(a, b).differences
    assert one.first is not None
    assert (one.first.what, one.first.index, one.first.time_ns) == ("packet", 2, 2000)
    assert (one.first.where, one.first.flow, one.first.ended) == ("sender", "bulk", "")
    assert one.first.fields == {"seq": (5, 6), "ecn": (0, 3)}
    assert one.first.words() == "packet 2 at 0.002000 ms, sender, bulk: seq 5 → 6, ecn none → CE"


def test_flags_and_fates_have_names(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [replace(POINT, packets=[{"flags": 24, "fate": 0}])])
    b = write_run(tmp_path / "b", [replace(POINT, packets=[{"flags": 0, "fate": 6}])])
    first = first_difference(a.points[0].path, b.points[0].path)
    assert first.words().endswith("flags PSH|ACK → none, fate none → lose")


def test_requests_are_compared_too(tmp_path: Path) -> None:
    """A digest covers them: without them two records of different digests would be called the same."""
    for name, begin_ns in (("a", 1), ("b", 2)):
        run = write_run(tmp_path / name, [replace(POINT, packets=[{}])])
        row = dict.fromkeys(REQUESTS.names, 0) | {"flow": "bulk", "begin_ns": begin_ns}
        pq.write_table(pa.Table.from_pylist([row], REQUESTS), run.points[0].path / "requests.parquet")
    first = first_difference(*(tmp_path / name / "points" / "a0" for name in ("a", "b")))
    assert first.words() == "request 0, bulk: begin_ns 1 → 2"


def test_names_are_compared_whatever_their_codes(tmp_path: Path) -> None:
    """The same names in another order of first appearance have other codes in the file."""
    a = write_run(tmp_path / "a", [replace(POINT, packets=[{}, {"where": "receiver"}])])
    b = write_run(tmp_path / "b", [replace(POINT, packets=[{"where": "receiver"}, {"where": "receiver"}])])
    (one,) = compare_runs(a, b).differences
    assert one.first is not None
    assert (one.first.index, one.first.fields) == (0, {"where": ("sender", "receiver")})
    said = "packet 0 at 0.000000 ms, sender, bulk: recorded at sender in the first run, at receiver in the second"
    assert one.first.words() == said, "no arrow, which would be read as the way of the packet"


@pytest.mark.parametrize(("first", "second", "ended"), [(3, 2, "b"), (0, 1, "a")])
def test_records_that_end_early_are_said_to(tmp_path: Path, first: int, second: int, ended: str) -> None:
    runs = [
        write_run(tmp_path / n, [replace(POINT, packets=[{}] * count)]) for n, count in (("a", first), ("b", second))
    ]
    (one,) = compare_runs(*runs).differences
    assert one.first is not None
    assert (one.first.index, one.first.ended, one.first.flow) == (min(first, second), ended, "bulk")
    assert f"the {'first' if ended == 'a' else 'second'} run ended before it" in one.first.words()


def test_packets_that_can_not_be_read_are_said_to(tmp_path: Path) -> None:
    other = replace(POINT, packets=[{"seq": 1}])
    for name, point in (("a", POINT), ("b", other)):
        write_run(tmp_path / name, [point])
    damaged = tmp_path / "b" / "points" / "a0" / "packets.parquet"
    whole = damaged.read_bytes()
    for broken in (whole[:-3], whole[:40], b"", whole[:20] + bytes(60) + whole[80:]):
        damaged.write_bytes(broken)
        first = first_difference(tmp_path / "a/points/a0", damaged.parent)
        assert "packets can't be compared" in first.note
        assert str(damaged) in first.words()
    damaged.unlink()
    (one,) = compare_runs(open_run(tmp_path / "a"), open_run(tmp_path / "b")).differences
    assert one.first is not None
    assert one.first.words() == f"packets can't be compared: there is no {damaged}"


def test_points_are_matched_by_what_they_set(tmp_path: Path) -> None:
    """Another default or topology changes ids; --set changes a tuple of all points."""
    a = write_run(tmp_path / "a", [POINT, replace(POINT, id="a1", tuples=[("hosts", "cc", "bbr"), TUPLES[1]])])
    same = [replace(POINT, id="b0"), replace(POINT, id="b1", tuples=[("hosts", "cc", "bbr"), TUPLES[1]])]
    assert compare_runs(a, write_run(tmp_path / "b", same)).same == 2
    told = [replace(one, id=f"c{i}", tuples=[one.tuples[0], ("switch", "delay", "9ms")]) for i, one in enumerate(same)]
    found = compare_runs(a, write_run(tmp_path / "c", [replace(told[0], packets=[{}]), told[1]]))
    assert (found.same, found.only_a, found.only_b) == (1, (), ())
    (one,) = found.differences
    assert (one.point, one.other, one.asked) == ("a0", "c0", (("switch", "delay", "5ms", "9ms"),))


def test_a_point_that_is_gone_is_worse_and_a_new_one_is_not(tmp_path: Path) -> None:
    more = replace(POINT, id="a1", tuples=[TUPLES[0]])
    a, b = write_run(tmp_path / "a", [POINT, more]), write_run(tmp_path / "b", [POINT])
    gone, new = compare_runs(a, b), compare_runs(b, a)
    assert (gone.worse, [point.id for point in gone.only_a]) == (True, ["a1"])
    assert (new.worse, new.differs, [point.id for point in new.only_b]) == (False, True, ["a1"])


def test_repetitions_are_not_mixed_up(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [POINT, replace(POINT, id="a1", repeat=1, packets=[{}])])
    b = write_run(tmp_path / "b", [replace(POINT, id="b1", repeat=1, packets=[{}]), replace(POINT, id="b0")])
    assert compare_runs(a, b).same == 2


@pytest.mark.parametrize(
    ("before", "after", "worse"), [("pass", "fail", True), ("fail", "pass", False), ("pass", "skip", True)]
)
def test_verdicts_have_a_direction(tmp_path: Path, before: str, after: str, worse: bool) -> None:
    a = write_run(tmp_path / "a", [replace(POINT, verdict=before)])
    b = write_run(tmp_path / "b", [replace(POINT, verdict=after, reason="slow")])
    found = compare_runs(a, b)
    assert (found.worse, found.differs, found.differences[0].first) == (worse, True, None)


def test_what_can_not_be_compared_is_refused(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", [POINT])
    with pytest.raises(PlanError, match="want the directory of a run; there is none"):
        open_run(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PlanError, match="want the directory of a run"):
        open_run(tmp_path / "empty")
    (tmp_path / "b.in-progress" / "points").mkdir(parents=True)
    for name in ("b", "b.in-progress"):
        with pytest.raises(PlanError, match=r"want a finished run; it is in progress"):
            open_run(tmp_path / name)
    with pytest.raises(PlanError, match=r"want a run of plan p, as .*/a is; got one of q; --across-plans"):
        check_alike(a, write_run(tmp_path / "c", [POINT], plan="q"))
    check_alike(a, open_run(tmp_path / "c"), across_plans=True)
    with pytest.raises(PlanError, match=r"want a run on lab, as .* is; got one on netns"):
        check_alike(a, write_run(tmp_path / "d", [POINT], testbed="netns"))
