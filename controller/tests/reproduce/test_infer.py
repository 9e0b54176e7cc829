# SPDX-License-Identifier: Apache-2.0
"""What packets alone say of a link and its hosts, on conversations whose link is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.plan import load_plan
from testctl.records.schema import PACKETS
from testctl.reproduce.infer import Inferred, infer
from testctl.reproduce.port import roundest
from testctl.reproduce.write import plan_text
from testctl_agent.spec.errors import PlanError

from controller.tests.reproduce.link import Path
from controller.tests.rules.conversation import HELLO, records


def values(inferred: Inferred) -> dict[str, str]:
    """{entity.param: its value, or its values with blanks between}; the plan of it is one that loads."""
    load_plan(plan_text(inferred, "a capture").encode())
    return {f"{item.entity}.{item.param}": " ".join(item.values) for item in inferred.tuples}


def whole(path: Path) -> Path:
    """Two bursts of 20 packets, all acknowledged in between, and closed."""
    path.burst(path.begins_us, 0, 20, "ecn 2")
    path.acked(40_000, 20 * 1434)
    path.burst(40_000, 20, 20, "ecn 2")
    path.acked(70_000, 40 * 1434)
    path.lines.append("70000 a > FA ack 0")
    return path


def test_rate_delay_mtu_and_bytes() -> None:
    got = values(infer(whole(Path()).records()))
    assert got["switch:receiver.rate"] == "12mbit"
    assert got["switch.delay"] == "5ms"
    assert got["all.mtu"] == "1486"
    assert got["f.bytes"] == "57.36kB"
    assert {"switch:receiver.buffer", "switch:receiver.ecn_threshold", "switch.fate", "f.pattern"}.isdisjoint(got)


@pytest.mark.parametrize("clock_us", [3_600_000_000.0, 777.0, -20_000.0])
def test_clocks_that_differ(clock_us: float) -> None:
    got = values(infer(whole(Path(clock_us=clock_us)).records()))
    assert (got["switch.delay"], got["switch:receiver.rate"]) == ("5ms", "12mbit")
    assert "switch.fate" not in got, "a time below 0 is no loss"


def test_packets_that_do_not_wait_tell_no_rate() -> None:
    path = Path(mbit=12e6)
    for number in range(20):
        path.burst(10_000 + 500 * number, number, 1)
    assert "switch:receiver.rate" not in values(infer(path.records()))


@pytest.mark.parametrize("every_us", [20e3, 300e6])
def test_the_pace_of_the_application_is_no_rate(every_us: float) -> None:
    """Packets that come 0 to 30 us late have waited for nothing."""
    path = Path(late={number: number * 7 % 31 for number in range(40)})
    for number in range(40):
        path.data(20_000 + number * every_us, number * 100, (number + 1) * 100)
        path.acked(40_000 + number * every_us, (number + 1) * 100)
    got = values(infer(path.records()))
    assert "switch:receiver.rate" not in got
    assert got["switch.delay"].startswith("5")


def test_lost_packets_are_actions_by_number() -> None:
    path = Path(drop=(4, 5, 25))
    whole(path)
    path.data(80_000, 4 * 1434, 5 * 1434)
    got = values(infer(path.records()))
    assert got["switch.fate"] == "drop data 5-6,26 of f, first"
    assert "switch:receiver.buffer" not in got


def test_a_lost_retransmission_is_no_first_one() -> None:
    path = Path(drop=(4, 40))
    whole(path)
    path.data(80_000, 4 * 1434, 5 * 1434, "tsval 1")
    path.data(90_000, 4 * 1434, 5 * 1434, "tsval 2")
    assert values(infer(path.records()))["switch.fate"] == "drop data 5 of f, first; drop data 41 of f"


def test_which_of_two_that_look_the_same_was_lost() -> None:
    path = Path(drop=(4,))
    whole(path)
    path.data(80_000, 4 * 1434, 5 * 1434)
    first = infer(path.records()).tuples
    path = Path(drop=(40,))
    whole(path)
    path.data(80_000, 4 * 1434, 5 * 1434)
    assert [item.values for item in first if item.param == "fate"] == [("drop data 5 of f, first",)]
    assert values(infer(path.records()))["switch.fate"] == "drop data 41 of f"


def test_losses_of_a_full_queue_are_the_buffers() -> None:
    path = whole(Path(buffer=20_000))
    assert len(path.lost) > 2, "the conversation has such losses"
    got = values(infer(path.records()))
    assert got["switch:receiver.buffer"] == "20kB"
    assert "switch.fate" not in got


def test_a_loss_of_a_short_queue_is_not() -> None:
    got = values(infer(whole(Path(buffer=20_000, drop=(2,))).records()))
    assert got["switch:receiver.buffer"] == "20kB"
    assert got["switch.fate"] == "drop data 3 of f, first"


def test_marks_of_a_threshold_and_others() -> None:
    got = values(infer(whole(Path(threshold=10_000)).records()))
    assert got["switch:receiver.ecn_threshold"] == "10kB"
    assert "switch.fate" not in got
    got = values(infer(whole(Path(mark=(0, 12, 13))).records()))
    assert got["switch.fate"] == "mark data 1,13-14 of f, first"
    assert "switch:receiver.ecn_threshold" not in got


def test_a_threshold_beyond_what_a_port_can_have_is_no_threshold() -> None:
    path = Path(threshold=600_000)
    path.burst(path.begins_us, 0, 500, "ecn 2")
    got = values(infer(path.records()))
    assert "switch:receiver.ecn_threshold" not in got
    assert got["switch.fate"] == "mark data 401-500 of f, first"


def test_late_and_doubled_packets() -> None:
    got = values(infer(whole(Path(late={3: 2_500.0}, twice=(7,))).records()))
    assert got["switch.fate"] == "delay data 4 of f by 2.5ms, first; duplicate data 8 of f, first"
    assert got["switch:receiver.rate"] == "12mbit"


def test_late_packets_that_no_plan_has_are_said() -> None:
    path = Path(mbit=120, late={3: 5_500_000.0} | {number: 2_500 + number for number in range(10, 1200, 3)})
    path.burst(path.begins_us, 0, 1200)
    inferred = infer(path.records())
    values(inferred)
    assert any("packets that came late by 142 other times" in text for text in inferred.unknown)


def test_pauses_are_a_schedule() -> None:
    path = Path()
    path.burst(path.begins_us, 0, 10)
    path.acked(30_000, 14_340)
    path.burst(300_000.5, 10, 5)
    path.acked(320_000, 15 * 1434)
    path.lines.append("500000 a > FA ack 0")
    got = values(infer(path.records()))
    assert got["f.pattern"] == "schedule 0ns:14.34kB,300ms:7.17kB,500ms:1B"
    assert got["f.duration"] == "500ms", "which ends before the last write of the pattern"


def test_an_answer_to_a_window_is_no_write() -> None:
    path = Path()
    path.burst(path.begins_us, 0, 10)
    path.acked(30_000, 14_340, "win 0")
    path.acked(60_000, 14_340, "win 65536")
    path.burst(60_000, 10, 5)
    assert "f.pattern" not in values(infer(path.records()))


def test_frames_of_several_segments_are_packets() -> None:
    path = whole(Path(drop=(6,)))
    alone = values(infer(path.records()))
    merged = [line for line in path.lines if line.split()[1:3] != ["a", ">"] or "A" not in line.split()[3]]
    sent = [line.split() for line in path.lines if line.split()[1:4] == ["a", ">", "A"] and ":" in line]
    for left, right in zip(sent[::2], sent[1::2], strict=True):
        start, end = left[4].split(":")[0], right[4].split(":")[1]
        merged.append(" ".join([*left[:4], f"{start}:{end}", *left[5:], "segs 2"]))
    path.lines = merged
    again = values(infer(path.records(hello=False)))
    assert again["switch.fate"] == alone["switch.fate"] == "drop data 7 of f, first"
    assert again["switch:receiver.rate"] == "12mbit"


def test_of_one_end_what_it_tells() -> None:
    inferred = infer(whole(Path()).records("a"))
    got = values(inferred)
    assert got["switch.delay"] == "5.022ms", "with half of what the SYN took on the link"
    assert got["f.bytes"] == "57.36kB"
    assert "switch:receiver.rate" not in got
    assert any("one end alone" in text for text in inferred.unknown)


def test_of_the_senders_end_alone_what_was_sent_again_was_lost() -> None:
    path = Path()
    for number in range(20):
        path.burst(path.begins_us, number, 1)
        path.acked(20_000 + 1_000 * number, (number + 1) * 1434)
    path.data(60_000, 4 * 1434, 5 * 1434)
    got = values(infer(path.records("a")))
    assert got["switch.fate"] == "drop data 5 of f, first"
    assert got["switch:receiver.rate"] == "12mbit"
    path.lines.append(f"70000 a < A ack 28680 sack {4 * 1434}:{5 * 1434}")
    assert "switch.fate" not in values(infer(path.records("a", hello=False))), "its receiver had it twice"


@pytest.mark.parametrize(
    ("flags", "answer", "want"), [("S", "SA", {"hosts.tcp_ecn": "0"}), ("SEC", "SAE", {"hosts.tcp_ecn": "1"}),
                                  ("SEC", "SA", {"sender.tcp_ecn": "1", "receiver.tcp_ecn": "0"})],
)  # fmt: skip
def test_ecn_of_the_handshake(flags: str, answer: str, want: dict[str, str]) -> None:
    hello = HELLO.replace("> S ", f"> {flags} ").replace("< SA ", f"< {answer} ")
    got = values(infer(records(hello + "10000 a > A 0:100 ack 0")))
    assert {name: value for name, value in got.items() if name.endswith("tcp_ecn")} == want


def test_congestion_controls_that_packets_rule_out() -> None:
    path = whole(Path())
    assert "dctcp" not in values(infer(path.records()))["hosts.cc"].split(), "its ACKs would be ECN-capable"
    path = Path(third="ecn 2")
    path.burst(path.begins_us, 0, 20, "ecn 2")
    path.acked(40_000, 28_680, "ecn 2")
    assert values(infer(path.records()))["hosts.cc"] == "dctcp"
    path = Path(mbit=120)
    for number in range(40):
        path.burst(10_000 + 1_700 * number, number, 1)
        path.acked(20_400 + 1_300 * number, (number + 1) * 1434)
    assert values(infer(path.records()))["hosts.cc"] == "bbr"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HELLO, "want connections with data"),
        ("0 c > S win 64000\n0 d < S win 64000", "want packets that a or b captured"),
    ],
)
def test_refusals(text: str, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        infer(records(text))


def test_flows_over_ipv6_stay_so() -> None:
    made = whole(Path()).records()
    assert "f.family" not in values(infer(made))
    (flow,) = made.point.flows
    made.point = replace(made.point, flows=(replace(flow, options={"family": 6}),))
    assert values(infer(made))["f.family"] == "6"


@pytest.mark.parametrize("name", ["c2", "sender", "receiver", "switch", "hosts", "all", "background1", "no"])
def test_every_connection_has_a_flow_of_its_own_name_that_a_plan_takes(name: str) -> None:
    path = Path(drop=(4,))
    whole(path)
    path.lines += [line.replace("28680", "28000") + " conn 1" for line in path.lines if "28680" in line]
    made = path.records()
    (flow,) = made.point.flows
    made.point = replace(made.point, flows=(replace(flow, name=name),))
    made.packets = made.packets.set_column(
        made.packets.schema.get_field_index("flow"), PACKETS.field("flow"),
        pa.array([name] * made.packets.num_rows).dictionary_encode().cast(PACKETS.field("flow").type),
    )  # fmt: skip
    inferred = infer(made)
    assert sorted(app.conn for conns in inferred.flows.values() for app in conns) == [0, 1]
    values(inferred)


_ODD = {name: st.integers(-2, 9) for name in ("seq", "ack", "tsval", "tsecr")} | {
    "length": st.integers(0, 3), "segs": st.integers(0, 3), "flags": st.integers(0, 255), "ecn": st.integers(0, 3),
    "time_ns": st.integers(-5, 10**7) | st.integers(0, 10**14), "direction": st.integers(0, 1), "out": st.booleans(),
    "where": st.sampled_from("ab"), "wire_bytes": st.integers(0, 2_000), "conn": st.integers(0, 2),
}  # fmt: skip


@given(st.lists(st.fixed_dictionaries(_ODD), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_of_any_packets_a_plan_that_loads_or_a_refusal(rows: list[dict[str, int]]) -> None:
    made = records(HELLO)
    usual = made.packets.to_pylist()[0]
    columns = {name: [row.get(name, usual[name]) for row in rows] for name in PACKETS.names}
    plain = {name: pa.array(column).dictionary_encode() if name in ("where", "flow") else pa.array(column)
             for name, column in columns.items()}  # fmt: skip
    made.packets = pa.table(plain).cast(PACKETS)
    try:
        inferred = infer(made)
    except PlanError:
        return
    load_plan(plan_text(inferred, "a capture").encode())


def test_the_roundest_number() -> None:
    assert [roundest(*pair) for pair in ((59046, 60369), (39365, 40782), (7, 7), (0, 3), (999, 1001))] == [
        60000, 40000, 7, 1, 1000
    ]  # fmt: skip
    assert np.all([low <= roundest(low, low + 7) <= low + 7 for low in range(300)])
