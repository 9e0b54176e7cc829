# SPDX-License-Identifier: Apache-2.0
"""Formulas in a plan: their values at each point, and what is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest
from testctl.core.path_facts import paths_of
from testctl.plan import Plan, load_plan, overview
from testctl.plan.points import setting

from controller.tests.support.refusal import refusal

HEAD = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n"
PATH = "  - [switch:receiver, rate, [10mbit, 20mbit]]\n  - [switch, delay, [5ms, 10ms]]\n"
TWO = """\
topology: {dumbbell: {senders: 2, receivers: 2}}
flows: {one: sender1 -> receiver1, two: sender2 -> receiver2}
tuples:
  - [left:right, rate, 10mbit]
  - [switches, delay, 5ms]
  - [right:receiver2, delay, 20ms]
  - [flows, duration, 1s]
"""


def loaded(text: str, *overrides: str) -> Plan:
    return load_plan(text.encode(), overrides=overrides)


def settings_of(plan: Plan, entity: str, param: str) -> list[Any]:
    """At each point, in order."""
    (target,) = (t for a in plan.assignments for t in a.targets if t.key == (entity, param))
    return [setting(point, target) for point in plan.points]


def test_a_buffer_follows_the_rate_and_the_delay() -> None:
    plan = loaded(HEAD + PATH + "  - [switch:receiver, buffer, [0.5 bdp, 2 bdp]]\n")
    products = [paths_of([point])["bulk"][0].bdp_bytes for point in plan.points]
    expected = [round(product * times) for product, times in zip(products, [0.5, 2] * 4, strict=True)]
    assert settings_of(plan, "switch:receiver", "buffer") == expected
    assert {point.tuples[2][2] for point in plan.points} == {"0.5 bdp", "2 bdp"}
    assert overview(plan).would_set["switch:receiver"]["buffer"] == (
        "0.5 bdp (6.283kB … 25.033kB)",
        "2 bdp (25.132kB … 100.132kB)",
    )


def test_the_id_is_that_of_the_value_written_out() -> None:
    head = HEAD + "  - [switch:receiver, rate, 10mbit]\n  - [switch, delay, 10ms]\n"
    formula = loaded(head + "  - [bulk, rate, rate / 4]\n  - [switch:receiver, buffer, switch.delay * rate]\n")
    plain = loaded(head + "  - [bulk, rate, 2.5mbit]\n  - [switch:receiver, buffer, 12500]\n")
    assert [point.id for point in formula.points] == [point.id for point in plain.points]


def test_formulas_of_formulas_and_of_lists() -> None:
    plan = loaded(
        HEAD
        + PATH
        + "  - [switch:receiver, buffer, [2 switch:receiver.ecn_threshold, 100kB]]\n"
        + "  - [switch:receiver, ecn_threshold, 5 mtu]\n  - [hosts, initcwnd, hosts.tcp_reordering * 4]\n"
        + "  - [hosts, tcp_reordering, 3]\n  - [bulk, bytes, 10 switch:receiver.buffer]\n"
    )
    assert settings_of(plan, "switch:receiver", "buffer")[:2] == [15_000, 100_000]
    assert settings_of(plan, "bulk", "bytes")[:2] == [150_000, 1_000_000]
    assert set(settings_of(plan, "sender", "initcwnd")) == {12}


def test_the_path_is_that_of_the_flows_that_pass() -> None:
    plan = loaded(TWO + "  - [one, bytes, bdp]\n  - [two, bytes, bdp]\n  - [right:receiver2, buffer, bdp]\n")
    one, two = settings_of(plan, "one", "bytes"), settings_of(plan, "two", "bytes")
    assert two > one
    assert settings_of(plan, "right:receiver2", "buffer") == two


def test_of_a_port_the_data_decide() -> None:
    text = HEAD.replace("}", ", back: receiver -> sender}") + "  - [switch, delay, 10ms]\n"
    plan = loaded(text + "  - [switch:receiver, rate, 10mbit]\n  - [switch:receiver, buffer, bdp]\n")
    assert settings_of(plan, "switch:receiver", "buffer") == [25_066]
    assert "switch:sender, buffer: bdp: want a constant rate on the one way of flow back" in refusal(
        loaded, text + "  - [switch:receiver, rate, 10mbit]\n  - [switch, buffer, bdp]\n"
    )


def test_whole_numbers_and_shares_are_rounded() -> None:
    plan = loaded(
        HEAD
        + "  - [switch, rate, 10mbit]\n  - [switch, delay, 10ms]\n  - [hosts, initcwnd, bdp / 1448B]\n"
        + "  - [bulk, requests, 10]\n  - [bulk, sizes, 10kB]\n  - [bulk, load, 1 / 3]\n"
    )
    assert set(settings_of(plan, "sender", "initcwnd")) == {17}
    assert settings_of(plan, "bulk", "load") == [0.333333333]


def test_on_the_command_line() -> None:
    plan = loaded(HEAD + PATH, "switch.buffer=0.5 bdp,2 bdp", "bulk.rate=rate / 4")
    assert len(plan.points) == 8
    assert settings_of(plan, "bulk", "rate")[::4] == [2_500_000, 5_000_000]


def test_conditions_name_a_formula_as_it_is_written_or_equal() -> None:
    text = HEAD + PATH + "  - [switch:receiver, buffer, [0.5 bdp, 2 bdp]]\n"
    plan = loaded(text + "exclude: [{switch:receiver.buffer: 0.50bdp}]\n")
    assert {point.tuples[2][2] for point in plan.points} == {"2 bdp"}
    want = "want one of its values 0.5 bdp, 2 bdp; got 3 bdp"
    assert want in refusal(loaded, text + "exclude: [{switch:receiver.buffer: 3 bdp}]\n")


@pytest.mark.parametrize(
    ("tuples", "want"),
    [
        ("[switch, buffer, 0.5 bqp + mtu]", "6:22: port switch:sender, buffer: 0.5 bqp + mtu: want bdp, rtt, rate, "
         "mtu or "
         "ENTITY.PARAM of a tuple; got bqp; did you mean bdp?"),
        ("[switch, buffer, 2 delay * rate]", "6:22: port switch:sender, buffer: 2 delay * rate: want bdp, rtt, "
         "rate, mtu "
         "or ENTITY.PARAM of a tuple; got delay; did you mean switch.delay?"),
        ("[switch, buffer, 2 swtch.delay * rate]", "6:22: port switch:sender, buffer: 2 swtch.delay * rate: no host, "
         "switch, port, flow or group named swtch; did you mean switch?"),
        ("[switch, buffer, 2 switch.dely * rate]", "6:22: port switch:sender, buffer: 2 switch.dely * rate: switch "
         "switch: "
         "no parameter named dely; did you mean delay?"),
        ("[switch, buffer, 2 bulk.bytes]", "6:22: port switch:sender, buffer: 2 bulk.bytes: no tuple sets bulk.bytes"),
        ("[switch, buffer, bdp + 3ms]", "6:22: port switch:sender, buffer: bdp + 3ms: want the same unit on both "
         "sides of "
         "+; got a size in bytes (bdp) and a time (3ms)"),
        ("[switch, buffer, rate]", "6:22: port switch:sender, buffer: want a size in bytes; got a rate, rate"),
        ("[hosts, initcwnd, bdp]", "6:23: host sender, initcwnd: want a number; got a size in bytes, bdp"),
        ("[switch, buffer, (bdp]", "6:22: switch switch, buffer: (bdp: want a closing parenthesis for each opening "
         "one"),
        ("[switch, buffer, [bdp, bdp]]", "6:28: switch switch, buffer: want every value once; got bdp again"),
        ("[hosts, mtu, 2 mtu]", "6:18: host sender, mtu: want a value, which has to be the same on several "
         "entities; got a "
         "formula"),
        ("[hosts, cc, cubic]\n  - [bulk, bytes, hosts.cc * 1MB]", "7:19: flow bulk, bytes: hosts.cc * 1MB: want "
         "numbers; got "
         "hosts.cc, which is the name of a congestion control, such as cubic"),
        ("[switch, buffer, 1000000 bdp]", "6:22: port switch:receiver, buffer: want a size such as 30kB, 64KiB or "
         "1MB, from 1B "
         "to 2147483.648kB, or none; got '12.566GB', which is 1000000 bdp, at switch:receiver.rate = 10mbit, "
         "switch.delay = "
         "5ms"),
        ("[switch, buffer, bdp - 2 bdp]", "6:22: port switch:receiver, buffer: want a size such as 30kB, 64KiB or "
         "1MB, from 1B "
         "to 2147483.648kB, or none; got '-12566B', which is bdp - 2 bdp, at switch:receiver.rate = 10mbit, "
         "switch.delay = "
         "5ms"),
        ("[switch, buffer, 1s * bdp / (rtt - rtt)]", "6:22: port switch:receiver, buffer: 1s * bdp / (rtt - rtt): "
         "want a "
         "divisor other than 0; got rtt - rtt = 0, at switch:receiver.rate = 10mbit, switch.delay = 5ms"),
        ("[switch:sender, rate, rate / 2]", "6:27: port switch:sender, rate: want no formula that needs its own "
         "value; got "
         "switch:sender.rate -> switch:sender.rate, at switch:receiver.rate = 10mbit, switch.delay = 5ms"),
        ("[switch:receiver, buffer, 2 switch:receiver.ecn_threshold]\n  - "
         "[switch:receiver, ecn_threshold, switch:receiver.buffer / 2]", "6:31: port switch:receiver, buffer: want "
         "no formula "
         "that needs its own value; got switch:receiver.buffer -> switch:receiver.ecn_threshold -> "
         "switch:receiver.buffer, "
         "at switch:receiver.rate = 10mbit, switch.delay = 5ms"),
        ("[bulk, rate, none]\n  - [bulk, read_rate, bulk.rate / 2]", "7:23: flow bulk, read_rate: bulk.rate / 2: "
         "want a constant "
         "number; got bulk.rate = none, at switch:receiver.rate = 10mbit, switch.delay = 5ms"),
        ('[switch:sender, delay, "1ms; 1s 2ms"]\n  - [bulk, bytes, bdp]', "7:19: flow bulk, bytes: bdp: want a "
        "constant rate on "
         "the one way of flow bulk, for bdp; got a delay that changes, at switch:receiver.rate = 10mbit, "
         "switch.delay = 5ms"),
    ],
)  # fmt: skip
def test_refused(tuples: str, want: str) -> None:
    assert refusal(loaded, f"{HEAD}{PATH}  - {tuples}\n").splitlines()[0] == f"<plan>:{want}"


def test_no_rate_on_the_path() -> None:
    want = "want a constant rate on the one way of flow bulk, for bdp; got none"
    assert refusal(loaded, HEAD + "  - [bulk, bytes, bdp]\n") == f"<plan>:4:19: flow bulk, bytes: bdp: {want}"


def test_the_round_trip_time_needs_no_rate() -> None:
    plan = loaded(HEAD + "  - [switch, delay, 5ms]\n  - [bulk, duration, 20 rtt + 1s]\n")
    assert settings_of(plan, "bulk", "duration") == [1_200_000_000]


def test_several_ways() -> None:
    text = "topology: {leaf_spine: {hosts: 4}}\nflows: {bulk: h1 -> h3}\ntuples:\n  - [switches, rate, 10mbit]\n"
    text += "  - [bulk, parallel, 8]\n  - [bulk, bytes, bdp]\n"
    assert refusal(loaded, text).endswith("want a constant rate on the one way of flow bulk, for bdp; got several ways")


def test_flows_whose_paths_differ() -> None:
    assert refusal(loaded, TWO + "  - [left:right, buffer, bdp]\n").partition(", buffer: ")[2] == (
        "bdp: want the same bdp for all flows of left:right; got one 25.066kB, two 43.816kB"
    )


def test_a_tuple_with_several_values() -> None:
    text = TWO + "  - [hosts, htb_buffer, bdp]\n  - [one, bytes, hosts.htb_buffer]\n"
    assert "bytes: hosts.htb_buffer: want one value of hosts.htb_buffer; got " in refusal(loaded, text)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("2 BDP", "got '2 BDP'; did you mean 2 bdp?"),
        ("0.5 bpd", "got '0.5 bpd'; did you mean 0.5 bdp?"),
        ("10 kbyte", "got '10 kbyte'; did you mean 10kB?"),
    ],
)
def test_what_may_have_been_meant(value: str, want: str) -> None:
    assert refusal(loaded, HEAD + f"  - [switch, buffer, {value}]\n").endswith(want)
