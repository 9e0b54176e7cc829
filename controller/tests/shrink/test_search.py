# SPDX-License-Identifier: Apache-2.0
"""The search over a case, with a lab made up from what is known of the DCTCP bug; what it can't be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from testctl.plan import Measured, load_plan
from testctl.results import Run
from testctl.results.provenance import plan_of
from testctl.shrink.case import Case, Tuple3, Tuples, candidate, open_case, plan_text, verdict_of
from testctl.shrink.command import prepare
from testctl.shrink.matters import Matter
from testctl.shrink.search import SearchResult, search
from testctl.shrink.trials import Trial, Trials
from testctl.shrink.write import print_found, ranges
from testctl.testbeds.choose import find
from testctl.testbeds.testbed import Request
from testctl_agent.spec.errors import PlanError

from .conftest import PLAN, measured, unsteady

MakeRun = Callable[..., Run]


def failing(run: Run) -> str:
    return next(point.id for point in run.points if point.verdict == "fail")


class MadeUpLab:
    """Judges candidates as a run would, by the fault's own rule."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tried: list[Tuples] = []
        self.widest = 0

    def __call__(self, batch: Sequence[Tuples]) -> list[Trial]:
        self.widest = max(self.widest, len(batch))
        return [self._one(tuples) for tuples in batch]

    def _one(self, tuples: Tuples) -> Trial:
        self.tried.append(tuples)
        try:
            found = candidate(self.case, tuples)
        except PlanError as error:
            return Trial(tuples, "unclear", str(error))
        if "htb_ecn_threshold" in found.point.settings["sender"] and "htb_rate" not in found.point.settings["sender"]:
            return Trial(tuples, "unclear", "there is no htb_rate to go with it")
        results = {point.id: Measured("pass", "", measured(point)) for point in found.points}
        verdict, words = verdict_of(self.case, found, results)
        return Trial(tuples, "stays" if verdict == self.case.wanted else "goes", words)


def shrunk(case: Case, width: int = 1) -> tuple[SearchResult, MadeUpLab]:
    lab = MadeUpLab(case)
    return search(case, lab, SearchResult(), probes=8, width=width), lab


def keys(tuples: Sequence[Tuple3]) -> list[str]:
    return [f"{entity}.{param}" for entity, param, _ in tuples]


@pytest.mark.parametrize("width", [1, 4])
def test_it_names_what_matters_and_the_ranges(make_run: MakeRun, width: int) -> None:
    run = make_run()
    found, lab = shrunk(open_case(run, failing(run)), width)
    assert found.done
    assert lab.widest <= width
    matters = {f"{m.item[0]}.{m.item[1]}": m for m in found.matters.values() if m.matters}
    assert set(matters) == {
        "ends.cc", "receiver.gro", "sender.htb_rate", "sender.htb_ecn_threshold", "sender.htb_mark", "all.mtu",
    }  # fmt: skip
    assert keys(found.smallest) == [*(k for k in keys(run.points[0].tuples) if k in matters), "bulk.duration"]
    assert ranges(matters["ends.cc"]) == "goes at dctcp_resched, dctcp"
    assert ranges(matters["receiver.gro"]) == "goes at off"
    assert ranges(matters["sender.htb_mark"]) == "goes at ack; it is the default"
    threshold, mtu = matters["sender.htb_ecn_threshold"], matters["all.mtu"]
    assert (threshold.below, threshold.least, threshold.most, threshold.above) == ("1kB", "2kB", "4kB", "5kB")
    assert "can't be run or judged without it" in ranges(matters["sender.htb_rate"])
    assert threshold.without == "goes"
    assert (mtu.least, mtu.most, mtu.above) == ("576", "2900", "3000")
    assert "longer than" in found.kept["bulk", "duration", "100ms"]
    idle = {keys([m.item])[0] for m in found.matters.values() if not m.matters}
    assert idle == {"ends.tcp_ecn", "sender.tso", "receiver.gro_flush", "switch.delay"}


def test_the_bounds_are_its_own_where_another_expectation_is_left_out(make_run: MakeRun) -> None:
    """As one that compares with a value which --set took away."""
    head, _, rest = PLAN.partition("  - name: throughput is steady")
    compared = "  - {name: gone, metric: stability_cv_10ms, at_most: 2, than: {ends.cc: dctcp}}\n"
    text = head.replace("expect:\n", f"expect:\n{compared}") + "  - name: throughput is steady" + rest
    run = make_run(("ends.cc=dctcp_bug",), text=text)
    case = open_case(run, failing(run))
    assert (case.judged_by, case.raw["max"]) == ("throughput is steady", "0.1")


def test_the_kernel_is_kept(make_run: MakeRun) -> None:
    """Without it the smallest plan would depend on the machine's default kernel."""
    run = make_run(("hosts.kernel=6.12",))
    found, lab = shrunk(open_case(run, failing(run)))
    assert "kernel" in found.kept["hosts", "kernel", "6.12"]
    assert all(("hosts", "kernel", "6.12") in tuples for tuples in lab.tried)
    assert ("hosts", "kernel", "6.12") in found.smallest


def test_the_smallest_plan_fails_and_loads(make_run: MakeRun) -> None:
    run = make_run()
    case = open_case(run, failing(run))
    found, _ = shrunk(case)
    text = plan_text(case, found.smallest, ["a comment"], dict.fromkeys(found.smallest, "beside it"))
    plan = load_plan(text)
    assert len(plan.points) == 1
    assert unsteady(plan.points[0])
    assert [e.name for e in plan.expectations] == ["throughput is steady"]


def test_the_plan_of_a_repetition_has_its_seed(make_run: MakeRun) -> None:
    run = make_run()
    case = open_case(run, failing(run))
    third = replace(case, point=replace(case.point, seed=case.plan.seed + 2, repeat=2))
    assert load_plan(plan_text(third, case.tuples)).points[0].seed == case.plan.seed + 2


def test_a_comparison_keeps_the_tuple_it_is_about_and_both_points(make_run: MakeRun) -> None:
    run = make_run()
    case = open_case(run, failing(run), "3")
    found, _ = shrunk(case)
    assert found.kept["ends", "cc", "dctcp_bug"] == "the expectation compares two of its values"
    assert "sender.htb_ecn_threshold" in keys(found.smallest)
    assert "sender.tso" not in keys(found.smallest)
    plan = load_plan(plan_text(case, found.smallest))
    assert [point.tuples[0] for point in plan.points] == [("ends", "cc", "dctcp_bug"), ("ends", "cc", "dctcp")]


@pytest.mark.parametrize("chosen", ["", "ack-moves-back"])
def test_a_rule_that_is_broken_is_shrunk_by(make_run: MakeRun, chosen: str) -> None:
    """Without an expectation that fails, or by its name; the smallest plan has no expectation."""
    run = make_run(text=PLAN if chosen else PLAN.partition("expect:")[0])
    case = open_case(run, failing(run), chosen)
    assert case.judged_by == "ack-moves-back"
    found, _ = shrunk(case)
    assert ("receiver", "gro", "on") in found.smallest
    assert "sender.tso" not in keys(found.smallest)
    plan = load_plan(plan_text(case, found.smallest))
    assert (len(plan.expectations), unsteady(plan.points[0])) == (0, True)
    with pytest.raises(PlanError, match=r"want one that is about point .*ack-moves-back; got 'ack-number'"):
        open_case(run, failing(run), "ack-number")


def test_a_point_that_broke_no_rule_or_did_not_run(make_run: MakeRun) -> None:
    run = make_run(text=PLAN.partition("expect:")[0])
    case = open_case(run, failing(run))
    made = candidate(case, case.tuples)
    fine, broken = (
        Measured(verdict, "none ran", {"bulk": {"rules_violated": "none"}}) for verdict in ("pass", "broken")
    )
    assert verdict_of(case, made, {made.point.id: fine}) == ("pass", "the rule ack-moves-back was not broken")
    assert verdict_of(case, made, {made.point.id: broken}) == ("broken", "none ran")


def test_a_rule_is_judged_where_the_kernel_reports_a_fault_and_not_without_an_instrument(make_run: MakeRun) -> None:
    run = make_run(text=PLAN.partition("expect:")[0])
    case = open_case(run, failing(run))
    made = candidate(case, case.tuples)
    broken = "ack-moves-back 1"
    for verdict, rules, want in (("fail", "none", "pass"), ("fail", broken, "fail"), ("pass", None, "invalid")):
        results = {made.point.id: Measured(verdict, "a fault", {"bulk": {"rules_violated": rules}})}
        assert verdict_of(case, made, results)[0] == want


def test_what_the_plan_allows_is_allowed_in_the_smallest_one(make_run: MakeRun) -> None:
    """Else it would break that rule too, and not meet with --holds what the point meets."""
    allow = 'allow:\n  - {rule: ack-moves-back, reason: "on purpose: #1", when: {ends.cc: dctcp_bug}}\n'
    run = make_run(text=PLAN + allow)
    case = open_case(run, failing(run), "throughput is steady")
    allowed = load_plan(plan_text(case, case.tuples)).allowed
    assert [(entry.rule, entry.reason, entry.when) for entry in allowed] == [("ack-moves-back", "on purpose: #1", {})]
    steady = next(p.id for p in run.points if ("ends", "cc", "dctcp") in p.tuples)
    case = open_case(run, steady, "throughput is steady", holds=True)
    assert not load_plan(plan_text(case, case.tuples)).allowed


def test_a_value_that_both_compared_points_have_is_no_sweep(make_run: MakeRun) -> None:
    text = PLAN.replace("than: {ends.cc: dctcp}", "than: {ends.cc: dctcp, receiver.gro_flush: 10us}")
    run = make_run(text=text)
    case = open_case(run, failing(run), "3")
    assert (dict(case.than), candidate(case, case.tuples).point.id) == ({"ends.cc": "dctcp"}, case.point.id)
    found, _ = shrunk(case)
    assert "receiver.gro_flush" not in keys(found.smallest)


def test_what_makes_a_point_pass(make_run: MakeRun) -> None:
    """At 30 kB it is steady; nothing is needed for that, since a host without a limiter is steady too."""
    run = make_run()
    steady = next(p.id for p in run.points if ("sender", "htb_ecn_threshold", "30kB") in p.tuples)
    found, _ = shrunk(open_case(run, steady, "throughput is steady", holds=True))
    assert keys(found.smallest) == ["bulk.duration"]


def test_a_run_with_other_values_than_its_plan_has(make_run: MakeRun) -> None:
    """summary.json has what --set changed."""
    run = make_run(("sender.htb_ecn_threshold=2500B", "hosts.kernel='6.1'"))
    case = open_case(run, failing(run))
    assert ("sender", "htb_ecn_threshold", "2500B") in case.tuples
    assert ("hosts", "kernel", "6.1") in case.tuples
    assert candidate(case, case.tuples).point.id == case.point.id == failing(run)
    assert {p.id for p in plan_of(run).points} >= {run.points[0].id}


def test_an_interrupted_search_keeps_what_it_has(make_run: MakeRun) -> None:
    run = make_run()
    case = open_case(run, failing(run))
    lab = MadeUpLab(case)

    def soon(batch: Sequence[Tuples]) -> list[Trial]:
        if len(lab.tried) >= 14:
            raise KeyboardInterrupt
        return lab(batch)

    found = SearchResult()
    with pytest.raises(KeyboardInterrupt):
        search(case, soon, found, probes=4, width=1)
    assert not found.done
    assert found.stage == "the smallest set"
    assert len(found.smallest) < len(case.tuples)
    assert lab([found.smallest])[0].stays


def test_a_point_that_does_not_fail_again(make_run: MakeRun) -> None:
    run = make_run()
    case = open_case(run, failing(run))
    with pytest.raises(PlanError, match="does not fail 'throughput is steady' when it is run again: other words"):
        search(case, lambda batch: [Trial(tuples, "goes", "other words") for tuples in batch], SearchResult(), 1, 1)


@pytest.mark.parametrize(
    ("point", "expectation", "holds", "said"),
    [
        ("pass", "", False, "nothing to shrink: point .* fails no expectation of its plan and breaks no rule; --holds"),
        ("broken", "", False, "is broken; want one that ran and was judged"),
        ("fail", "no such", False, "want one that is about point"),
        ("fail", "1", False, "expect no packet is lost: want one that point .* fails; it is pass there"),
        ("fail", "some point loses packets", False, "is about some of several points, not about one"),
        ("pass", "3", False, "it is not about that point"),
    ],
)
def test_what_cannot_be_shrunk(make_run: MakeRun, point: str, expectation: str, holds: bool, said: str) -> None:
    run = make_run(verdicts={11: "broken"})
    chosen = [p.id for p in run.points if p.verdict == point][-1 if point == "pass" else 0]
    with pytest.raises(PlanError, match=said):
        open_case(run, chosen, expectation, holds)


def test_a_rack_and_a_file_in_place_of_the_directory_are_refused(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    case = open_case(run, failing(run))
    (tmp_path / "file").touch()
    with pytest.raises(PlanError, match="file: want a directory for the search; got a file"):
        prepare(case, tmp_path / "file")
    rack = replace(run, summary={**run.summary, "testbed": "inventory/mine"})
    with pytest.raises(PlanError, match=r"want a run in the lab or in netns, .* got one of inventory/mine"):
        open_case(rack, failing(run))


def test_words_for_ranges() -> None:
    item = ("sender", "htb_rate", "2gbit")
    assert ranges(Matter(item, True, least="1gbit", most="2gbit", above="3gbit")) == (
        "stays from 1gbit to 2gbit; goes at 3gbit"
    )
    assert ranges(Matter(item, True, least="2gbit", most="2gbit", below="1gbit", above="3gbit")) == (
        "stays at 2gbit alone; goes at 1gbit and 3gbit"
    )


def test_brackets_are_no_markup(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(text=PLAN.replace("throughput is steady", "steady [/b] [rfc]"))
    case = open_case(run, failing(run))
    found, _ = shrunk(case)
    said = StringIO()
    with ProcessPoolExecutor(1) as pool:
        none = Trials(case, tmp_path, pool, lambda points: find("lab").ready(points, Request()))
        print_found(case, found, none, tmp_path / "[x].yaml", Console(file=said, width=80))
    assert said.getvalue().startswith("\nsteady [/b] [rfc]: the smallest set of tuples with this failure")
    assert "/[x].yaml\n" in said.getvalue()
