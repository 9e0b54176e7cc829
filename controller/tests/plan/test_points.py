# SPDX-License-Identifier: Apache-2.0
"""What a plan expands to, and what is in a point."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from testctl.plan import Plan, cost_ms, coverage, expand, load_plan, overview
from testctl.report import provenance
from testctl_agent.spec.errors import PlanError

Load = Callable[..., Plan]


def test_a_point_holds_what_the_testbed_needs(plan_of: Load) -> None:
    plan = plan_of("""\
        groups: {ends: [sender, receiver]}
        tuples:
          - [ends, tcp_ecn, 1]
          - [ends, cc, cubic]
          - [all, mtu, 1500]
          - [receiver, tso, off]
          - [switch, rate, 10gbit]
          - ['switch:receiver', delay, [10us, 1ms]]
          - [bulk, duration, 2s]
          - [bulk, start, 100ms]
          - [bulk, parallel, 2]
        seed: 7
        """)
    first, second = (point.to_json() for point in plan.points)
    assert first["settings"] == {
        "sender": {"capture": True, "net.ipv4.tcp_ecn": 1, "cc": "cubic", "mtu": 1500},
        "receiver": {"capture": True, "net.ipv4.tcp_ecn": 1, "cc": "cubic", "mtu": 1500, "tso": False},
        "switch": {"mtu": 1500},
        "switch:sender": {"rate": 10**10},
        "switch:receiver": {"rate": 10**10, "delay": 10_000},
    }
    options = {"start": 10**8, "parallel": 2, "generator": "tgen", "duration": 2 * 10**9}
    assert first["flows"] == [
        {
            "name": "bulk",
            "from": "sender",
            "to": "receiver",
            "generator": "tgen",
            "server_port": 5001,
            "client_port": 40000,
            "parallel": 2,
            "options": options,
        }
    ]
    assert first["duration_ns"] == 21 * 10**8
    assert first["seed"] == 7
    assert ["switch:receiver", "delay", "10us"] in first["tuples"]
    assert second["settings"]["switch:receiver"]["delay"] == 10**6
    assert re.fullmatch(r"[0-9a-f]{12}", first["id"])
    assert first["id"] != second["id"]
    assert json.loads(json.dumps(first)) == first
    assert '"settings": {"sender"' in json.dumps(first)


def test_each_repetition_has_the_next_seed(plan_of: Load) -> None:
    """Behind the greatest comes 0."""
    plan = plan_of(f"tuples: [[hosts, cc, [cubic, bbr]], [switch, rate, 1gbit]]\nseed: {2**31 - 2}\nrepeat: 3")
    assert [(point.repeat, point.seed) for point in plan.points] == [(0, 2**31 - 2), (1, 2**31 - 1), (2, 0)] * 2


def test_more_specific_tuples_win(plan_of: Load) -> None:
    (point,) = plan_of("""\
        tuples:
          - [receiver, cc, reno]
          - [hosts, cc, cubic]
          - ['switch:sender', rate, 2gbit]
          - [switch, rate, 1gbit]
        """).points
    assert (point.settings["sender"]["cc"], point.settings["receiver"]["cc"]) == ("cubic", "reno")
    assert point.settings["switch:sender"]["rate"] == 2 * 10**9
    assert point.settings["switch:receiver"]["rate"] == 10**9


def test_the_id_is_of_what_is_set_and_nothing_else(plan_of: Load, load: Load) -> None:
    ids = [
        plan_of("tuples: [[hosts, cc, cubic], [sender, tso, on], [switch, rate, 1gbit]]"),
        plan_of("tuples: [[switch, rate, 1000mbit], [sender, tso, true], [hosts, cc, cubic]]"),
        plan_of("about: x\ngroups: {g: [receiver, sender]}\n"
                "tuples: [[sender, tso, on], [g, cc, cubic], [switch, rate, 1000000000]]\n"
                "expect: [{metric: jain, max: 1}]"),
    ]  # fmt: skip
    assert len({plan.points[0].id for plan in ids}) == 1
    others = [
        plan_of("tuples: [[hosts, cc, cubic], [sender, tso, on], [switch, rate, 1gbit]]\nseed: 2"),
        plan_of("tuples: [[hosts, cc, cubic], [sender, tso, off], [switch, rate, 1gbit]]"),
        load("topology: dumbbell\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, cubic]]"),
        load("topology: pair\nflows: {bulk: receiver -> sender}\ntuples: [[hosts, cc, cubic], [sender, tso, on]]"),
    ]
    assert len({plan.points[0].id for plan in (ids[0], *others)}) == 5


def test_repeats_are_points_of_their_own(plan_of: Load) -> None:
    plan = plan_of("tuples: [[hosts, cc, [a, b]]]\nrepeat: 3")
    assert [(p.settings["sender"]["cc"], p.repeat) for p in plan.points] == [(c, r) for c in "ab" for r in range(3)]
    assert len({p.id for p in plan.points}) == 6


def test_full_product_in_order_without_the_excluded(plan_of: Load) -> None:
    plan = plan_of("""\
        tuples: [[hosts, cc, [a, b]], [sender, tso, [on, off]], [switch, delay, [1us, 2us]]]
        exclude:
          - {hosts.cc: a, sender.tso: off}
          - {hosts.cc: b, switch.delay: [1us]}
        """)
    assert [tuple(text for _, _, text in p.tuples) for p in plan.points] == [
        ("a", "on", "1us"), ("a", "on", "2us"), ("b", "on", "2us"), ("b", "off", "2us")
    ]  # fmt: skip
    assert expand(plan) == plan.points
    one, two, three = coverage(plan)
    assert (one.covered, one.feasible, one.total) == (6, 6, 6)
    assert (two.covered, two.feasible, two.total) == (9, 9, 12)
    assert (three.covered, three.feasible, three.total) == (4, 4, 8)


def test_a_group_member_in_exclude_means_the_groups_tuple(plan_of: Load) -> None:
    plan = plan_of("tuples: [[hosts, cc, [a, b]]]\nexclude: [{sender.cc: a}]")
    assert [p.settings["receiver"]["cc"] for p in plan.points] == ["b"]


def test_cover(plan_of: Load) -> None:
    sweep = "tuples: [[hosts, cc, [a, b, c]], [sender, tso, [on, off]], [switch, delay, [1us, 2us, 3us]], "
    sweep += "[sender, gro_flush, [1us, 2us, 3us]]]\n"
    plan = plan_of(sweep + "design: {cover: 2}")
    assert 9 <= len(plan.points) <= 14
    assert [c.share for c in coverage(plan)][:2] == [1.0, 1.0]
    assert coverage(plan)[2].share < 1.0
    assert plan_of(sweep + "design: {cover: 2}").points == plan.points
    assert plan_of(sweep + "design: {cover: 2, seed: 5}").points != plan.points
    assert len(plan_of(sweep + "design: {cover: 4}").points) == 54
    assert len(plan_of(sweep + "design: {cover: 1}").points) == 3


def test_how_long_a_point_takes(plan_of: Load) -> None:
    def seconds(flow: str) -> float:
        return plan_of(f"tuples: [[hosts, cc, a]{flow}]").points[0].duration_ns / 1e9

    assert seconds("") == 10
    assert seconds(", [bulk, duration, 3s], [bulk, start, 1s]") == 4
    assert seconds(", [bulk, bytes, 25MB]") == 3
    assert seconds(", [bulk, bytes, 25MB], [bulk, parallel, 2]") == 5
    assert seconds(", [bulk, bytes, 100GB]") == 60
    assert seconds(", [bulk, bytes, 100GB], [bulk, duration, 3s]") == 3


def test_set_replaces_adds_and_wins(plan_of: Load) -> None:
    sweep = "tuples: [[hosts, cc, [a, b]], [sender, tso, on]]"
    one = plan_of(sweep, ["hosts.cc=c,d"])
    assert [p.settings["sender"]["cc"] for p in one.points] == ["c", "d"]
    assert [p.settings["receiver"]["cc"] for p in plan_of(sweep, ["receiver.cc=x"]).points] == ["x", "x"]
    assert [p.settings["sender"]["tso"] for p in plan_of(sweep, ["hosts.tso=[off]"]).points] == [False, False]
    assert plan_of(sweep, ["switch:receiver.delay=5us"]).points[0].settings["switch:receiver"]["delay"] == 5000
    assert plan_of(sweep, ["hosts.kernel='6.10'"]).points[0].settings["sender"]["kernel"] == "6.10"
    assert plan_of(sweep, ["sender.net.ipv4.tcp_ecn=1"]).points[0].settings["sender"]["net.ipv4.tcp_ecn"] == 1


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("sender.tcp_ecn=7", "--set sender.tcp_ecn=7: host sender, tcp_ecn: want one of 0, 1, 2; got 7"),
        ("sendr.cc=a", "--set sendr.cc=a: no host, switch, port, flow or group named sendr; did you mean sender?"),
        ("sender.ccc=a", "--set sender.ccc=a: host sender: no parameter named ccc; did you mean cc?"),
        ("sender=a", "--set sender=a: want ENTITY.PARAM=VALUE"),
        ("sender.cc=", "--set sender.cc=: want ENTITY.PARAM=VALUE"),
        ("sender.cc=[]", "--set sender.cc=[]: want at least one value; got an empty list"),
        ("sender.cc=[a", "--set sender.cc=[a: want a value or a list of values; not YAML: expected ',' or ']', "
         "but got '<stream end>' while parsing a flow sequence"),
    ],
)  # fmt: skip
def test_bad_set(plan_of: Load, word: str, want: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of("tuples: [[hosts, cc, [a, b]]]", [word])
    assert str(caught.value) == want


def test_the_same_set_twice_is_refused(plan_of: Load) -> None:
    with pytest.raises(PlanError, match=r"--set sender\.cc=y: host sender, cc: set twice, first at --set sender\.cc=x"):
        plan_of("tuples: [[hosts, cc, [a, b]]]", ["sender.cc=x", "sender.cc=y"])


def test_set_may_take_away_what_conditions_name(plan_of: Load) -> None:
    text = """\
        tuples: [[hosts, cc, [a, b]]]
        exclude: [{hosts.cc: z}]
        """
    with pytest.raises(PlanError, match="want one of its values a, b; got z"):
        plan_of(text)
    expected = """\
        tuples: [[hosts, cc, [a, b]], [sender, tso, on]]
        exclude: [{hosts.cc: a, sender.tso: off}]
        expect: [{metric: jain, max: 1, when: {hosts.cc: a}}]
        """
    assert len(plan_of(expected, ["hosts.cc=b", "sender.tso=on,off"]).points) == 2


def test_set_drops_the_expectations_that_compare_with_what_it_takes_away(plan_of: Load) -> None:
    text = """\
        tuples: [[hosts, cc, [a, b, c]]]
        expect:
          - {name: against a, metric: jain, at_least: 5, than: {hosts.cc: a}}
          - {name: against b, metric: jain, at_least: 5, than: {hosts.cc: b}}
          - {name: alone, metric: jain, min: 0.5}
        """
    whole = plan_of(text)
    assert (len(whole.expectations), whole.dropped) == (3, ())
    plan = plan_of(text, ["hosts.cc=b,c"])
    assert [expectation.name for expectation in plan.expectations] == ["against b", "alone"]
    assert plan.dropped == ("against a",)
    assert list(provenance.lines({"dropped": list(plan.dropped)})) == [
        ("dropped", "expectation 'against a': it is about what --set or --without took away")
    ]


def test_summary(plan_of: Load) -> None:
    plan = plan_of("tuples: [[hosts, cc, [a, b]], [switch, rate, 1gbit], [bulk, duration, 2s]]\nrepeat: 2")
    summary = overview(plan)
    assert summary.points == 4
    assert [(factor.key, factor.values) for factor in summary.factors] == [("hosts.cc", ("a", "b"))]
    assert summary.would_set["switch:sender"] == {"rate": ("1gbit",)}
    assert summary.would_set["sender"] == {"cc": ("a", "b")}
    assert summary.defaults["bulk"] == {"start": "0ns", "parallel": "1", "generator": "tgen"}
    assert (summary.virtual_s, summary.wall_s) == (8.0, 4 * cost_ms(plan.points[0]) / 1000)
    assert json.loads(json.dumps(summary.to_json()))["coverage"][0]["covered"] == 2


def test_testbed_names(plan_of: Load) -> None:
    assert plan_of("tuples: [[hosts, rack_only, on]]", testbed="inventory/rack.yaml").points
    with pytest.raises(PlanError, match="testbed netns can't have it"):
        plan_of("tuples: [[hosts, rack_only, on]]", testbed="netns")


def test_set_takes_a_value_with_a_comma_in_quotes() -> None:
    """Commas outside of quotes part the values of a sweep."""
    text = b"topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[switch, fate, drop data 1 of bulk]]\n"
    one, other = "drop data 1-4 of bulk, first", "drop data 7 of bulk, first"
    for word, texts in {
        f'switch.fate="{one}"': (one,),
        f"switch.fate='{one}'": (one,),
        f'switch.fate="{one}", "{other}"': (one, other),
        f'switch.fate=["{one}", "{other}"]': (one, other),
    }.items():
        (assignment,) = load_plan(text, metrics={}, overrides=[word]).assignments
        assert assignment.texts == texts
    with pytest.raises(PlanError, match=r"""a value with a comma wants quotes: --set 'switch\.fate="…, …"'"""):
        load_plan(text, metrics={}, overrides=[f"switch.fate={one}"])


def test_a_schedule_ends_after_its_last_write() -> None:
    """Its bytes at 100 Mb/s, and a second more; with a duration, whichever ends first."""
    text = b"topology: pair\nflows: {a: sender -> receiver}\ntuples: [[a, pattern, 'schedule 0s:20kB,5900ms:1MB']]\n"
    (point,) = load_plan(text, metrics={}).points
    assert point.duration_ns == 5_900_000_000 + 81_600_000 + 10**9
    (point,) = load_plan(text, metrics={}, overrides=["a.duration=2s"]).points
    assert point.duration_ns == 2 * 10**9
