# SPDX-License-Identifier: Apache-2.0
"""Selective acknowledgements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from testctl.rules import sack_reneged
from testctl.rules.core.scoreboard import Scoreboard

from controller.tests.rules.conversation import HELLO_B, found

LATER = """
    900000 b < A
"""


def after_hello(text: str) -> str:
    return HELLO_B + text + LATER


def test_each_block_is_data_queued_at_the_receiver() -> None:
    """RFC 2018, 3."""
    talk = after_hello(
        """
        20000 b < A 1000:2000 ack 0
        20010 b < A 3000:4000 ack 0
        20010 b > A ack 0 sack {}
        20020 b < A 2000:3000 ack 0
        """
    )
    assert found("sack-arrived", talk.format("3000:4000,1000:2000"), host="b").count == 0
    assert found("sack-arrived", talk.format("1000:4000"), host="b").count == 1
    result = found("sack-arrived", talk.format("3000:4001"), host="b")
    assert result.first[0].text == "reports 3000:4001, not all of which had arrived"
    assert found("sack-arrived", talk.format("900:2000"), host="b").count == 1


def test_blocks_may_be_of_several_packets_and_connections_are_apart() -> None:
    talk = "".join(
        f"""
        5000  b < S conn {conn}
        5000  b > SA ack 0 conn {conn}
        15000 b < A ack 0 conn {conn}
        """
        for conn in (0, 1)
    )
    talk += """
        20000 b < A 1000:2000 ack 0 conn 0
        20010 b < A 2000:3000 ack 0 conn {}
        20020 b > A ack 0 sack 1000:3000 conn 0
    """
    assert found("sack-arrived", talk.format(0), host="b").count == 0
    assert found("sack-arrived", talk.format(1), host="b").count == 1


def test_the_bytes_just_below_a_block_have_not_been_received() -> None:
    """RFC 2018, 3; RFC 2883, 4: but for the first block, if it reports duplicate data."""
    talk = after_hello(
        """
        20000 b < A 0:2000 ack 0
        20000 b < A 3000:4000 ack 0
        20010 b > A ack 2000 sack {}
        """
    )
    assert found("sack-above-ack", talk.format("0:1000,3000:4000"), host="b").count == 0
    assert found("sack-above-ack", talk.format("3000:4000,0:1000"), host="b").count == 1
    assert found("sack-above-ack", talk.format("2000:4000"), host="b").count == 1


def test_the_first_block_must_contain_the_segment_that_triggered_the_ack() -> None:
    """RFC 2018, 4: unless that advanced the ACK number."""
    talk = after_hello(
        """
        20000 b < A 1000:2000 ack 0
        20000 b > A ack 0 sack 1000:2000
        20010 b < A 3000:4000 ack 0
        20010 b > A ack 0 sack {}
        20020 b < A 0:500 ack 0
        20020 b > A ack 500 sack 1000:2000,3000:4000
        """
    )
    assert found("sack-first-block", talk.format("3000:4000,1000:2000"), host="b").count == 0
    assert found("sack-first-block", talk.format("1000:2000,3000:4000"), host="b").count == 1
    fin = talk.replace("b < A 3000:4000 ack 0", "b < FA 4000:4000 ack 0").replace(",3000:4000", ",4000:4001")
    assert found("sack-first-block", fin.format("4000:4001,1000:2000"), host="b").count == 0
    assert found("sack-first-block", fin.format("1000:2000,4000:4001"), host="b").count == 1


def test_several_packets_may_come_before_their_acks_in_an_instant() -> None:
    talk = after_hello(
        """
        20000 b < A 1000:2000 ack 0
        20000 b < A 3000:4000 ack 0
        20000 b > A ack 0 sack 1000:2000
        20000 b > A ack 0 sack 3000:4000,1000:2000
        """
    )
    assert found("sack-first-block", talk, host="b").count == 0


def test_sack_options_should_be_in_all_acks_that_do_not_ack_the_highest_number() -> None:
    """RFC 2018, 4."""
    talk = after_hello(
        """
        20000 b < A 1000:2000 ack 0
        20000 b > A ack 0 sack 1000:2000
        30000 b < A 0:500 ack 0
        30000 b > A ack 500 {}
        40000 b < A 500:1000 ack 0
        40000 b > A ack 2000
        """
    )
    assert found("sack-present", talk.format("sack 1000:2000"), host="b").count == 0
    assert found("sack-present", talk.format(""), host="b").count == 1


def test_linux_forgets_the_oldest_of_many_blocks() -> None:
    starts = (1000, 3000, 5000, 7000, 9000)
    talk = HELLO_B
    for number, start in enumerate(starts):
        shown = ",".join(f"{low}:{low + 1000}" for low in starts[max(number - 2, 0) : number + 1][::-1])
        talk += f"""
        {20000 + number} b < A {start}:{start + 1000} ack 0
        {20000 + number} b > A ack 0 ts 5/5 sack {shown}
        """
    talk += """
        30000 b < A 0:1000 ack 0
        30200 b > A ack 2000 ts 5/5
    """
    assert found("sack-present", talk, host="b").count == 0


def test_discarding_of_sacked_packets_is_discouraged() -> None:
    """RFC 2018, 8."""
    talk = after_hello(
        """
        20000 b < A 1000:4000 ack 0 segs 3
        20000 b > A ack 0 sack 1000:4000
        30000 b < A 0:1000 ack 0
        30000 b > A ack {}
        """
    )
    assert found("sack-reneged", talk.format("4000"), host="b").count == 0
    assert found("sack-reneged", talk.format("500 sack 1000:4000"), host="b").count == 0
    assert found("sack-reneged", talk.format("500 sack 1000:5000"), host="b").count == 0
    assert found("sack-reneged", talk.format("1000"), host="b").count == 1
    assert found("sack-reneged", talk.format("500 sack 1000:3000"), host="b").count == 1
    assert found("sack-reneged", talk.format("500 sack 2000:4000"), host="b").count == 1


def test_blocks_of_a_long_connection_have_an_order() -> None:
    """However many numbers they begin at: 3 million blocks, the last of them smaller than the one before."""
    many, last = 3_000_000, 9 * 3_000_000
    start = np.append(9 * np.arange(many), [last, last, last])
    end = np.append(9 * np.arange(many) + 5, [last + 5, last + 8, last + 6])
    rows = np.arange(len(start))
    none = np.empty(0, np.int64)
    trace: Any = SimpleNamespace(
        acks=rows >= 0,
        apart=np.zeros(len(rows), np.int64),
        blocks=lambda number, of: (rows, start, end) if number == 1 else (none, none, none),
    )
    board = Scoreboard(trace)
    board.acks = trace.acks
    at, known, to = board.blocks
    assert at[-2:].tolist() == [many, many + 1]
    assert (to - known)[-2:].tolist() == [5, 3]
    assert (to - known)[:many].tolist() == [5] * many


def test_a_block_that_becomes_smaller_is_found_behind_millions(monkeypatch: pytest.MonkeyPatch) -> None:
    many = 2_100_000  # times 2^42 is more than 63 bits hold
    start = np.append(9 * np.arange(many), [9 * many] * 2)
    end = np.append(start[:-1] + 5, start[-1] + 4)
    row = np.append(np.full(many + 1, 1), 2)  # of the trace
    made = SimpleNamespace(
        duplicate=np.zeros(len(row), np.bool_), row=row, start=start, end=end, number=np.full(len(row), 9)
    )
    monkeypatch.setattr(sack_reneged, "blocks", lambda trace: made)
    talk = HELLO_B + "20000 b > A ack 0 sack 1:2\n"
    assert [one.row for one in found("sack-reneged", talk, host="b").first] == [2]


def test_a_duplicate_is_forgotten_where_its_ack_waits_and_more_comes() -> None:
    """Linux since 4.18."""
    talk = after_hello(
        """
        20000 b < A 2000:3000 ack 0
        20000 b > A ack 0 sack 2000:3000
        30000 b < A 2000:3000 ack 0
        {0} b < A 4000:5000 ack 0
        {0} b > A ack 0 sack 4000:5000,2000:3000
        """
    )
    assert found("dsack-of-duplicate", talk.format(31000), host="b").count == 0
    assert found("dsack-of-duplicate", talk.format(32000), host="b").count == 1
    settings = {"b": {"net.ipv4.tcp_comp_sack_nr": 0}}
    assert found("dsack-of-duplicate", talk.format(31000), host="b", settings=settings).count == 1


def test_but_may_be_used_if_the_receiver_runs_out_of_buffer_space() -> None:
    """RFC 2018, 8: then no rule knows what the receiver still has."""
    talk = after_hello("20000 b < A 1000:4000 ack 0 segs 3\n20000 b > A ack 0 sack 1000:4000\n30000 b > A ack 0")
    without = {"b": {"snmp": {"TcpExt.TCPOFODrop": 3}}}
    for rule in ("sack-reneged", "sack-present"):
        assert found(rule, talk, host="b", counters={"b": {"snmp": {"TcpExt.TCPOFODrop": 0}}}).undecided == ""
        why = found(rule, talk, host="b", counters=without).undecided
        assert why == "b had no memory for some packets (TcpExt.TCPOFODrop)"


@pytest.mark.parametrize(
    ("options", "acked", "count"), [({}, 0, 1), ({"read_pause": "10ms-1s"}, 0, 0), ({"read_pause": "10ms-1s"}, 2000, 1)]
)
def test_the_ack_of_a_duplicate_may_wait_while_much_is_unread(options: dict[str, Any], acked: int, count: int) -> None:
    """Half of the buffer ends quick ACKs (__tcp_select_window()), but only where something is not acknowledged."""
    talk = after_hello(
        f"""
        20000 b < A 0:1000 ack 0
        20000 b > A ack {acked // 2}
        30000 b < A 1000:2000 ack 0
        30000 b > A ack {acked}
        31000 b < A 1000:2000 ack 0
        60000 b > A ack 2000
        70000 b < A 0:1000 ack 0
        70000 b > A ack 2000 sack 0:1000
        """
    )
    assert found("dsack-of-duplicate", talk, host="b", options=options).count == count


def test_the_first_block_specifies_the_duplicate_segment() -> None:
    """RFC 2883, 4."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20000 b < A 2000:3000 ack 0
        20000 b > A ack 1000 sack 2000:3000
        30000 b < A {0} ack 0
        30000 b > A ack 1000 sack {1}
        """
    )
    rule = "dsack-of-duplicate"
    assert found(rule, talk.format("0:1000", "0:1000,2000:3000"), host="b").count == 0
    assert found(rule, talk.format("2000:3000", "2000:3000,2000:3000"), host="b").count == 0
    assert found(rule, talk.format("0:1000", "2000:3000"), host="b").count == 1
    assert found(rule, talk.format("500:1500", "2000:3000"), host="b").count == 0
    off = {"b": {"net.ipv4.tcp_dsack": 0}}
    assert found(rule, talk.format("0:1000", "2000:3000"), host="b", settings=off).undecided


def test_a_dsack_block_is_only_used_to_report_a_duplicate_sequence() -> None:
    """RFC 2883, 4."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000
        30000 b < A {0} ack 0
        30000 b > A ack 2000 sack {1}
        """
    )
    rule = "dsack-arrived-twice"
    assert found(rule, talk.format("0:2000", "0:1000"), host="b").count == 0
    assert found(rule, talk.format("500:2000", "500:1000"), host="b").count == 0
    assert found(rule, talk.format("1000:2000", "0:1000"), host="b").count == 1


def test_a_fin_that_arrives_twice_is_reported() -> None:
    """RFC 2883, 4: it takes a number."""
    talk = (
        HELLO_B + "20000 b < A 0:1000 ack 0\n20000 b < FA ack 0\n20000 b > A ack 1001\n{}30000 b > A ack 1001 sack {}"
    )
    rule = "dsack-arrived-twice"
    again = "30000 b < FA 1000:1000 ack 0\n"
    assert found(rule, talk.format(again, "1000:1001"), host="b").count == 0
    assert found(rule, talk.format(again, "999:1000"), host="b").count == 1
    assert found(rule, talk.format("", "1000:1001"), host="b").count == 1


def test_the_ack_of_a_fin_that_had_waited_repeats_its_block() -> None:
    """tcp_fin(): where the host has sent its own FIN."""
    talk = HELLO_B + (
        "{}20000 b < FA 1000:2000 ack {}\n20000 b > A ack 0 sack 1000:2001\n"
        "30000 b < A 0:1000 ack {}\n30000 b > A ack 2001 sack {}"
    )
    rule = "dsack-arrived-twice"
    closed = "16000 b > FA ack 0\n"
    assert found(rule, talk.format(closed, 1, 1, "1000:2001"), host="b").count == 0
    assert found(rule, talk.format(closed, 1, 1, "1000:2000"), host="b").count == 1
    assert found(rule, talk.format("", 0, 0, "1000:2001"), host="b").count == 1


def test_the_bytes_beside_a_block_have_not_arrived() -> None:
    """RFC 2018, 3."""
    talk = after_hello(
        """
        20000 b < A 1000:2000 ack 0
        20000 b > A ack 0 sack 1000:2000
        21000 b < A 2000:3000 ack 0
        21000 b > A ack 0 sack 1000:3000
        22000 b > A ack 0 sack {}
        """
    )
    assert found("sack-isolated", talk.format("1000:3000"), host="b").count == 0
    for block in ("1000:2000", "2000:3000"):
        result = found("sack-isolated", talk.format(block), host="b")
        assert result.count == 1
        assert result.first[0].text == f"reports {block}; a byte beside it had arrived"
    assert found("sack-isolated", talk.format("2000:3000,1000:3000"), host="b").count == 0  # a D-SACK


def test_of_more_blocks_than_are_remembered_nothing_is_judged_until_the_gaps_are_filled() -> None:
    arrive = "".join(f"2000{n} b < A {n}000:{n + 1}000 ack 0\n" for n in (1, 3, 5, 7, 9))
    arrive += "20010 b > A ack 0 sack 9000:10000,7000:8000,5000:6000\n"
    arrive += "21000 b < A 2000:3000 ack 0\n21200 b > A ack 0 sack 2000:3000{}\n"
    filled = "21300 b < A 0:10000 ack 0\n21500 b > A ack 10000\n"
    beyond = "22000 b < A 11000:12000 ack 0\n22000 b < A 12000:13000 ack 0\n22500 b > A ack {} sack 12000:13000\n"
    text = after_hello(arrive.format(",9000:10000"))
    assert found("sack-isolated", text, host="b").count == 0
    assert found("sack-isolated", after_hello(arrive.format("") + beyond.format(0)), host="b").count == 0
    assert found("sack-isolated", after_hello(arrive.format("") + filled + beyond.format(10000)), host="b").count == 1
