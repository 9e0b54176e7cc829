# SPDX-License-Identifier: Apache-2.0
"""Every bad plan is refused with who, wanted, got and where."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.plan import Plan, load_plan
from testctl_agent.spec.errors import PlanError

from controller.tests.support.refusal import refusal

Load = Callable[..., Plan]
GOOD = "tuples: [[hosts, cc, cubic]]\n"

# What follows "topology: pair" and "flows: {bulk: sender -> receiver}" (lines 1 and 2), and the expected error.
TUPLES = {
    "tuples: [[sendr, cc, cubic]]": "3:11: no host, switch, port, flow or group named sendr; did you mean sender?",
    "tuples: [[zzz, cc, cubic]]": "3:11: no host, switch, port, flow or group named zzz; "
    "topology pair has sender, receiver, switch",
    "tuples: [['switch:sendr', rate, 1gbit]]": "3:11: switch switch has no port toward sendr; "
    "its ports are switch:sender, switch:receiver",
    "tuples: [[sender, gro_flsh, 10us]]": "3:19: host sender: no parameter named gro_flsh; did you mean gro_flush?",
    "tuples: [[sender, tcp_ecm, 1]]": "3:19: host sender: no parameter named tcp_ecm; did you mean tcp_ecn?",
    "tuples: [[sender, duration, 1s]]": "3:19: host sender: no parameter named duration, which is one of a flow",
    "tuples: [[all, cc, cubic]]": "3:16: group all: its switch switch has no parameter named cc, "
    "which is one of a host or flow",
    "tuples: [[sender, tcp_ecn, 7]]": "3:28: host sender, tcp_ecn: want one of 0, 1, 2; got 7",
    "tuples: [[sender, tso, maybe]]": "3:24: host sender, tso: want on or off; got 'maybe'",
    "tuples: [[sender, tso, ]]": "3:10: tuples: want [entity, parameter, value], "
    "or [entity, parameter, [value, …]] to sweep; got a list of 2",
    "tuples: [[sender, tso, ~]]": "3:24: host sender, tso: want on or off; got nothing",
    "tuples: [[sender, tso, {a: 1}]]": "3:24: host sender, tso: want on or off; got a mapping",
    "tuples: [[sender, tso, [[on]]]]": "3:25: host sender, tso: want on or off; got a list",
    "tuples: [[sender, tso, []]]": "3:24: sender, tso: want at least one value; got an empty list",
    "tuples: [[sender, gro_flush, 10]]": "3:30: host sender, gro_flush: want a time with its unit, "
    "such as 10s, 200ms, 20us or 5ns; got 10",
    "tuples: [[sender, gro_flush, 10 parsecs]]": "3:30: host sender, gro_flush: want a time with its unit, "
    "such as 10s, 200ms, 20us or 5ns; got '10 parsecs'",
    "tuples: [[sender, mtu, 100]]": "3:24: host sender, mtu: want a whole number from 576 to 65535 bytes; got 100",
    "tuples: [[sender, gro_flush, [10us, 0.01ms]]]": "3:37: host sender, gro_flush: want every value once; "
    "got 0.01ms again",
    "tuples: [[sender, cc, a], [sender, cc, b]]": "3:27: host sender, cc: set twice, first at <plan>:3:10",
    "tuples: [[hosts, cc, a], [all, mtu, 1500], [hosts, cc, b]]": "3:44: host sender, cc: set twice, "
    "first at <plan>:3:10",
    "groups: {g: [sender]}\ntuples: [[hosts, cc, a], [g, cc, b]]": "4:26: host sender, cc: set twice, "
    "first at <plan>:4:10 (by group hosts)",
    "tuples: [[sender, tcp_ecn, 1], [sender, net.ipv4.tcp_ecn, 1]]": "3:32: host sender, net.ipv4.tcp_ecn: set twice, "
    "first at <plan>:3:10",
    "groups: {g: [sender]}\ntuples: [[g, cc, a], [sender, cc, b]]": "4:10: group g, cc: has no effect, "
    "since more specific tuples set it for every entity",
    "tuples: [[hosts, rack_only, on]]": "3:18: group hosts, rack_only: testbed lab can't have it; these can: inventory",
    "tuples: []": "3:9: tuples: want a list of [entity, parameter, value], "
    "or [entity, parameter, [value, …]] to sweep; got an empty list",
    "tuples: [sender]": "3:10: tuples: want [entity, parameter, value], "
    "or [entity, parameter, [value, …]] to sweep; got sender",
    "tuples: [[[a], cc, cubic]]": "3:11: tuples: want [entity, parameter, value], "
    "or [entity, parameter, [value, …]] to sweep; got a list",
}
DISTRIBUTED = {
    "tuples: [[hosts, mtu, 1500]]": "3:10: host sender, mtu: want it the same on every entity of the path of flow bulk "
    "(sender - switch - receiver); got none on switch",
    "tuples: [[all, mtu, 1500], [receiver, mtu, 9000]]": "3:28: host receiver, mtu: want it the same on every entity "
    "of the path of flow bulk (sender - switch - receiver); got 9000, and 1500 on host sender",
    "tuples: [[sender, mtu, [1500, 9000]], [receiver, mtu, [1500, 9000]], [switch, mtu, 1500]]": "3:70: switch switch, "
    "mtu: want it the same on every entity of the path of flow bulk (sender - switch - receiver); "
    "got 1500, and 9000 on host sender",
    "tuples: [[sender, kernel, '6.1'], [receiver, kernel, '6.12']]": "3:35: host receiver, kernel: want it the same on "
    "every host of the testbed; got 6.12, and 6.1 on host sender",
    "tuples: [[sender, kernel, '6.1']]": "3:10: host sender, kernel: want it the same on every host of the testbed; "
    "got none on receiver",
}
FIELDS = {
    GOOD + "repaet: 2": "4:1: no field named repaet; did you mean repeat?",
    GOOD
    + "x: 2": "4:1: no field named x; want one of about, topology, flows, groups, tuples, design, zip, repeat, seed, "
    "exclude, expect, allow, figures",
    GOOD + "repeat: 0": "4:9: repeat: want a whole number from 1 to 10000; got 0",
    GOOD + "repeat: many": "4:9: repeat: want a whole number from 1 to 10000; got many",
    GOOD + "seed: 1.5": "4:7: seed: want a whole number from 0 to 2147483647; got 1.5",
    GOOD + "design: all": "4:9: design: want full, {cover: 2} or {sample: 200}; got all",
    GOOD + "design: {seed: 3}": "4:9: design: want a field cover or a field sample; got none",
    GOOD + "design: {cover: 9}": "4:17: design: cover: want a whole number from 1 to 6; got 9",
    GOOD + "tuples: []": "4:1: tuples: given twice, first at <plan>:3:1",
    GOOD + "groups: {bulk: [sender]}": "4:10: group bulk: the name is taken by a flow",
    GOOD + "groups: {all: [sender]}": "4:10: group all: the name is taken by a group",
    GOOD + "groups: {g: [sendr]}": "4:14: group g: no host, switch, port, flow or group named sendr; "
    "did you mean sender?",
    GOOD + "groups: {g: []}": "4:13: group g: want at least one member; got none",
    GOOD + "groups: {G: [sender]}": "4:10: group: want a name of a-z, 0-9 and _ that begins with a letter, "
    "at most 31 characters; got G",
    GOOD + "groups: [a]": "4:9: groups: want a mapping such as {ends: [sender, receiver]}; got a list",
    GOOD + "exclude: {hosts.cc: cubic}": "4:10: exclude: want a list of mappings; got a mapping",
    GOOD + "exclude: [{}]": "4:11: exclude: want a mapping such as {ends.cc: cubic}; got an empty mapping",
    GOOD + "exclude: [{hosts.cc: reno}]": "4:22: exclude, hosts.cc: want one of its values cubic; got reno",
    GOOD + "exclude: [{hosts.tso: on}]": "4:12: exclude: no tuple sets hosts.tso; did you mean hosts.cc?",
    GOOD + "exclude: [{hsts.cc: on}]": "4:12: exclude: no host, switch, port, flow or group named hsts; "
    "did you mean hosts?",
    GOOD + "exclude: [{hosts: on}]": "4:12: exclude: want ENTITY.PARAM; got hosts",
    GOOD + "exclude: [{cc: cubic}]": "4:12: exclude: want ENTITY.PARAM; got cc; did you mean hosts.cc?",
    GOOD + "exclude: [{hosts.cc: cubic}]": ": expands to nothing: exclude leaves no point of 1",
    "tuples: [[sender, cc, a], [receiver, cc, b]]\nexclude: [{hosts.cc: a}]": "4:12: exclude: hosts.cc is set by "
    "several tuples; name one of sender.cc, receiver.cc",
}
EXPECT = {
    "{max: 1}": "4:11: expect 1: want a field metric, fails_with, eventually or always; got none",
    "{fails_with: ETIMEOUT}": "4:24: expect fails with ETIMEOUT 1: fails_with: no failure named ETIMEOUT; "
    "did you mean ETIMEDOUT?",
    "{fails_with: ETIMEDOUT, metric: jain, max: 1}": "4:24: expect fails with ETIMEDOUT 1: want fails_with without "
    "metric, max",
    "{metric: throughput, max: 1}": "4:20: expect throughput 1: no metric named throughput; "
    "did you mean throughput_bps?",
    "{metric: jain}": "4:11: expect jain 1: want one of min, max, equals, at_least, at_most; got none",
    "{metric: jain, mx: 1}": "4:26: expect 1: no field named mx; did you mean max?",
    "{metric: jain, min: high}": "4:31: expect jain 1: min: want a number; got high",
    "{metric: jain, equals: high}": "4:34: expect jain 1: equals: want a number; got high",
    "{metric: throughput_bps, equals: none}": "4:44: expect throughput_bps 1: equals: want a number, or "
    "a rate such as 10gbit, 100mbit or 64kbit; got none",
    "{metric: stall_cause, min: 2}": "4:38: expect stall_cause 1: want equals of a metric that is text; got min",
    "{metric: stall_cause, at_most: 2, than: {hosts.cc: a}}": "4:42: expect stall_cause 1: want equals of a metric "
    "that is text; got at_most",
    "{metric: stall_cause, equals: a, tolerance: 2}": "4:55: expect stall_cause 1: want tolerance with a number; got "
    "text",
    "{metric: jain, min: 2s}": "4:31: expect jain 1: min: want a number; got 2s",
    "{metric: jain, min: 90%}": "4:31: expect jain 1: min: want a number; got 90%; did you mean 0.9?",
    "{metric: throughput_bps, min: 2s}": "4:41: expect throughput_bps 1: min: want a number, or a rate such as 10gbit, "
    "100mbit or 64kbit; got 2s",
    "{metric: jain, min: 2, max: 1}": "4:11: expect jain 1: want min <= max; got 2 and 1",
    "{metric: jain, min: 1, equals: 1}": "4:11: expect jain 1: want min and max, or equals, "
    "or at_least and at_most with than; got min, equals",
    "{metric: jain, at_least: 5, than: {flow: bulc}}": "4:52: expect jain 1: than: no flow named bulc; "
    "did you mean bulk?",
    "{metric: jain, at_least: 5, than: {flow: [a]}}": "4:52: expect jain 1: than: want the name of a flow; got a list",
    "{metric: jain, at_least: 5}": "4:11: expect jain 1: want at_least or at_most together with than; "
    "got at_least without than",
    "{metric: jain, max: 5, than: {hosts.cc: a}}": "4:11: expect jain 1: want at_least or at_most together with than; "
    "got than without at_least or at_most",
    "{metric: jain, max: 5, flow: blk}": "4:40: expect jain 1: no flow named blk; did you mean bulk?",
    "{metric: jain, max: 5, flow: sender}": "4:40: expect jain 1: no flow named sender",
    "{metric: jain, max: 5, quantifier: most}": "4:46: expect jain 1: quantifier: want one of every, some; got most",
    "{metric: jain, max: 5, when: {hosts.cc: c}}": "4:51: expect jain 1: when, hosts.cc: want one of its values a, b; "
    "got c",
    "{metric: jain, at_most: 1, than: {hosts.cc: [a, b]}}": "4:44: expect jain 1: than: want one value for each",
    "{metric: jain, max: 1, tolerance: 2}": "4:45: expect jain 1: want tolerance with equals only",
    "{metric: jain, equals: 1, tolerance: -2}": "4:48: expect jain 1: tolerance: want 0 or more; got -2",
    "{metric: jain, equals: 1, tolerance: -2%}": "4:48: expect jain 1: tolerance: want 0 or more; got -2%",
    "{metric: jain, equals: 1, tolerance: 1e999%}": "4:48: expect jain 1: tolerance: want 0 or more; got 1e999%",
    "{metric: jain, max: 5, flow: []}": "4:40: expect jain 1: flow: want at least one; got none",
    "{metric: jain, at_least: 5, than: {flow: bulk}}": "4:11: expect jain 1: want a flow other than bulk; got none",
    "{always: queue, max: 5, flow: []}": "4:41: expect always queue 1: flow: want at least one; got none",
    "{metric: jain, paper: {source: s}}": "4:33: expect jain 1: paper: want a field published; got none",
    "{metric: jain, paper: {published: 2}}": "4:33: expect jain 1: paper: want a field source; got none",
    "{metric: jain, paper: {source: s, published: }}": "4:55: expect jain 1: paper: published: want "
    "a number or text; got nothing",
    "{metric: jain, paper: {source: s, published: [2]}}": "4:56: expect jain 1: paper: published: want "
    "a number or text; got a list",
    "{metric: jain, paper: {source: s, published: 1e400}}": "4:56: expect jain 1: paper: published: want a number; "
    "got 1e400",
    "{metric: jain, paper: {source: s, published: 2, within: -1}}": "4:67: expect jain 1: paper: within: want 0 or "
    "more; got -1",
    "{metric: jain, max: 1, paper: {source: s, published: text, within: 1}}": "4:78: expect jain 1: paper: want "
    "within with a published number; got text",
    "{metric: jain, paper: {source: s, published: 2, wthin: 1}}": "4:59: expect jain 1: paper: no field named "
    "wthin; did you mean within?",
    "{metric: jain, paper: {source: s, published: text}}": "4:11: expect jain 1: want one of min, max, equals, "
    "at_least, at_most; got none",
    "{metric: jain, than: {hosts.cc: a}}": "4:11: expect jain 1: want one of min, max, equals, at_least, at_most; "
    "got none",
    "{metric: jain, max: 5, than: {hosts.cc: a}, paper: {source: s, published: 2}}": "4:11: expect jain 1: want "
    "at_least or at_most together with than; got than without at_least or at_most",
    "{metric: jain, paper: PRR}": "4:33: expect jain 1: paper: want a mapping of source, published, within, why; "
    "got PRR",
    "{name: n, metric: jain, max: 1}, {name: n, metric: jain, max: 1}": "4:44: expect n: want a name for each; "
    "got it twice",
}
HEAD = {
    "flows: {bulk: sender -> sendr}": "2:15: flow bulk: no host named sendr; did you mean sender?",
    "flows: {bulk: sender -> switch}": "2:15: flow bulk: switch is a switch; the hosts are sender, receiver",
    "flows: {bulk: sender -> sender}": "2:15: flow bulk: want two different hosts; got sender twice",
    "flows: {bulk: sender}": "2:15: flow bulk: want HOST -> HOST; got sender",
    "flows: {}": "2:8: flows: want at least one, such as {bulk: sender -> receiver}; got an empty mapping",
    "flows: {sender: sender -> receiver}": "2:9: flow sender: the name is taken by a host, switch or group",
    "flows: {Bulk: sender -> receiver}": "2:9: flow: want a name of a-z, 0-9 and _ that begins with a letter, "
    "at most 31 characters; got Bulk",
}
TOPOLOGY = {
    "pear": "1:11: no topology named pear; did you mean pair?",
    "qq": "1:11: no topology named qq; there are chain, dumbbell, leaf_spine, pair, star; "
    "your own: the path of its file, as ./NAME.yaml",
    "[pair]": "1:11: topology: want a name or {name: {parameter: number}}; got a list",
    "{dumbbell: {sender: 2}}": "1:23: topology dumbbell: no field named sender; did you mean senders?",
    "{dumbbell: {senders: 0}}": "1:32: topology dumbbell, senders: want a whole number from 1 to 100; got 0",
    "{dumbbell: {senders: two}}": "1:32: topology dumbbell, senders: want a whole number from 1 to 100; got two",
    "{pair: {n: 1}}": "1:18: topology pair: want no parameters; got n",
    "{pair: 3}": "1:18: topology pair: want no parameters; got 3",
}


def _refused(load: Load, text: str, want: str) -> None:
    first = refusal(load, text).splitlines()[0]
    assert first == f"<plan>{'' if want.startswith(':') else ':'}{want}"


@pytest.mark.parametrize(("rest", "want"), [*TUPLES.items(), *DISTRIBUTED.items(), *FIELDS.items()])
def test_refused(load: Load, rest: str, want: str) -> None:
    _refused(load, f"topology: pair\nflows: {{bulk: sender -> receiver}}\n{rest}\n", want)


@pytest.mark.parametrize(("item", "want"), EXPECT.items())
def test_expectation_refused(load: Load, item: str, want: str) -> None:
    head = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, [a, b]]]\n"
    _refused(load, f"{head}expect: [ {item}]\n", want)


@pytest.mark.parametrize(("line", "want"), HEAD.items())
def test_flow_refused(load: Load, line: str, want: str) -> None:
    _refused(load, f"topology: pair\n{line}\n{GOOD}", want)


@pytest.mark.parametrize(("name", "want"), TOPOLOGY.items())
def test_topology_refused(load: Load, name: str, want: str) -> None:
    _refused(load, f"topology: {name}\nflows: {{bulk: sender -> receiver}}\n{GOOD}", want)


def test_missing_fields_are_all_named(load: Load) -> None:
    assert refusal(load, "about: x\n").splitlines() == [
        "<plan>:1:1: want a field topology; got none",
        "<plan>:1:1: want a field flows; got none",
        "<plan>:1:1: want a field tuples; got none",
    ]


def test_several_errors_are_reported_together_and_capped(plan_of: Load) -> None:
    rows = "".join(f"  - [sender, nothing{i}, 1]\n" for i in range(30))
    lines = refusal(plan_of, "tuples:\n" + rows).splitlines()
    assert len(lines) == 21
    assert (
        lines[0] == "<plan>:4:14: host sender: no parameter named nothing0; testctl params host lists those there are"
    )
    assert lines[-1] == "… and 10 more"


def test_a_long_value_is_cut_in_the_message(plan_of: Load) -> None:
    assert len(refusal(plan_of, f"tuples: [[sender, tso, {'x' * 5000}]]")) <= 400


@pytest.mark.parametrize(
    ("expect", "want"),
    [
        (
            "at_least: 5, than: {hosts.cc: a}, when: {hosts.cc: b}",
            "than: the plan has no point hosts.cc = a with sender.tso = off",
        ),
        ("max: 5, when: {hosts.cc: a, sender.tso: off}", "no point of the plan meets its `when`"),
    ],
)
def test_points_that_exclude_leaves_out(plan_of: Load, expect: str, want: str) -> None:
    head = "tuples: [[hosts, cc, [a, b]], [sender, tso, [on, off]]]\nexclude: [{hosts.cc: a, sender.tso: off}]\n"
    text = f"{head}expect: [{{name: n, metric: jain, {expect}}}]"
    assert refusal(plan_of, text) == f"<plan>:5:10: expect n: {want}"


def test_too_many_points_are_refused_before_they_are_made(plan_of: Load) -> None:
    values = ", ".join(f"{i}us" for i in range(1, 1001))
    caught = refusal(plan_of, f"tuples: [[sender, gro_flush, [{values}]], [receiver, gro_flush, [{values}]], "
            f"[switch, delay, [{values}]], [hosts, cc, [a, b]]]")  # fmt: skip
    assert caught == (
        "<plan>: expands to more than --max-points 10000: 1000 (sender.gro_flush) x 1000 (receiver.gro_flush) x "
        "1000 (switch.delay) x 2 (hosts.cc) = 2000000000"
    )


def test_repeat_counts_toward_max_points(plan_of: Load) -> None:
    caught = refusal(plan_of, "tuples: [[hosts, cc, [a, b]]]\nrepeat: 3\n", max_points=5)
    assert caught == "<plan>: expands to more than --max-points 5: 2 (hosts.cc) = 2, repeated 3 times"
    assert len(plan_of("tuples: [[hosts, cc, [a, b]]]\nrepeat: 3\n", max_points=6).points) == 6


def test_too_much_to_cover(plan_of: Load) -> None:
    values = ", ".join(f"{i}us" for i in range(1, 201))
    caught = refusal(plan_of, f"tuples: [[sender, gro_flush, [{values}]], [receiver, gro_flush, [{values}]], "
            f"[switch, delay, [{values}]]]\ndesign: {{cover: 2}}", max_points=100_000)  # fmt: skip
    assert caught == "<plan>: design: want at most 50000 value tuples to cover; cover: 2 would make 120000"


def test_excludes_that_cannot_be_worked_out(load: Load) -> None:
    rng = random.Random(0)
    hosts = [f"h{i}" for i in range(1, 31)]

    def exclude() -> str:
        return ", ".join(f"{h}.tcp_ecn: {rng.sample(range(3), 2)}" for h in rng.sample(hosts, 3))

    tuples = ", ".join(f"[{h}, tcp_ecn, [0, 1, 2]]" for h in hosts)
    excludes = ", ".join(f"{{{exclude()}}}" for _ in range(60))
    head = "topology: {star: {hosts: 30}}\nflows: {f: h1 -> h2}\n"
    caught = refusal(load, head + f"tuples: [{tuples}]\nexclude: [{excludes}]\n")
    assert caught == "<plan>: exclude: too entangled to be worked out; want fewer or simpler conditions"


def test_the_place_is_in_the_users_file(tmp_path: Path) -> None:
    plan = tmp_path / "x.yaml"
    plan.write_text(
        "# SPDX-License-Identifier: Apache-2.0\ntopology: {chain: {hops: 2}}\nflows: {a: h1 -> h3}\n"
        "tuples:\n  - [h3, tcp_ecn, 7]\n",
        encoding="utf-8",
    )
    assert refusal(load_plan, plan) == f"{plan}:5:19: host h3, tcp_ecn: want one of 0, 1, 2, 3, 4, 5; got 7"


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"none\.yaml: can't read the plan: No such file or directory"):
        load_plan(tmp_path / "none.yaml")
    with pytest.raises(PlanError, match="can't read the plan: Is a directory"):
        load_plan(tmp_path)


@pytest.mark.parametrize("text", ['"\\e]0;mine\\a"', '"\\x9b2J"', '"\\u202etxt"'])
def test_what_a_terminal_would_act_on(text: str) -> None:
    plan = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, cubic]]\nabout: " + text
    with pytest.raises(PlanError, match=r"<plan>:4:8: want text that can be shown, without control characters") as said:
        load_plan(plan)
    assert all(char.isprintable() or char == "\n" for char in str(said.value))


@pytest.mark.parametrize(
    "text",
    [
        "tuples:\n  - [sender, mtu, [" + ",".join(f"{i}x" for i in range(20_000)) + "]]\n",
        "tuples: [[hosts, cc, cubic]]\n" + "".join(f"x{i}: 1\n" for i in range(20_000)),
        "tuples: [[hosts, cc, cubic]]\ngroups:\n" + "  a: [sender]\n" * 10_000,
    ],
)
def test_of_many_problems_the_first_are_said(text: str) -> None:
    lines = refusal(load_plan, "topology: pair\nflows: {bulk: sender -> receiver}\n" + text).splitlines()
    assert len(lines) == 21
    assert lines[-1].startswith("… and ")


@pytest.mark.parametrize("begins", ["d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "0a0d0d0a"])
@pytest.mark.parametrize("size", [100, 400_000])
def test_a_capture_is_no_plan(tmp_path: Path, begins: str, size: int) -> None:
    (tmp_path / "prod.pcap").write_bytes(bytes.fromhex(begins) + bytes(size))
    with pytest.raises(PlanError, match=r"prod\.pcap: this is a capture of packets, not a plan$"):
        load_plan(tmp_path / "prod.pcap")


SHORT = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, bytes, 10kB]\n"


@pytest.mark.parametrize(
    ("tuples", "want"),
    [
        ("  - [sender, htb_rate, [none, 1mbit]]\n  - [sender, htb_burst, 20kB]\n", "6:25: host sender, htb_burst: "
         "want htb_rate too, at every point: there is no limiter without it; exclude the points without one"),
        ("  - [sender, htb_buffer, 20kB]\n", "5:26: host sender, htb_buffer: want htb_rate too"),
        ("  - [bulk, family, 6]\n  - [all, mtu, [1500, 1279]]\n", "6:23: host sender, mtu: want at least 1280 with a "
         "flow over IPv6 (RFC 8200, section 5); got 1279"),
        ("  - [sender, tcp_retries2, 256]\n", "5:28: host sender, tcp_retries2: want a whole number from 1 to 255; "
         "got 256"),
    ],
)  # fmt: skip
def test_what_hosts_refuse_is_refused_before_the_run(tuples: str, want: str) -> None:
    with pytest.raises(PlanError, match=re.escape(want)):
        load_plan((SHORT + tuples).encode())


@pytest.mark.parametrize(
    "tuples",
    [
        "  - [sender, htb_rate, 1mbit]\n  - [sender, htb_burst, 20kB]\n",
        "  - [sender, htb_buffer, none]\n",
        "  - [all, mtu, 576]\n",
        "  - [bulk, family, 6]\n  - [all, mtu, 1280]\n",
    ],
)
def test_what_hosts_take(tuples: str) -> None:
    assert load_plan((SHORT + tuples).encode()).points
