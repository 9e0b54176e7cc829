# SPDX-License-Identifier: Apache-2.0
"""Timestamps."""

from __future__ import annotations

import re
from typing import Any

import pytest
from testctl.rules.core.spec import Found

from controller.tests.rules import conversation
from controller.tests.rules.conversation import HELLO

STAMPS = """
    0     a > S win 64000 ts 1000/0
    10000 a < SA ack 0 win 64000 ts 5000/1000
    10000 a > A ack 0 ts 1010/5000
"""
STAMPS_B = """
    5000  b < S win 64000 ts 1000/0
    5000  b > SA ack 0 win 64000 ts 5000/1000
    15000 b < A ack 0 ts 1010/5000
"""


def found(rule: str, text: str, **more: Any) -> Found:
    """What a rule finds, which is the same where the timestamps of one end wrap on the way."""
    result = conversation.found(rule, text, **more)
    for first in (1005, 1015, 5002, 5018):
        wrapped = re.sub(r"(?<=ts )(\d+)/(\d+)", lambda stamps, first=first: _later(stamps, -first), text)
        assert conversation.found(rule, wrapped, **more).count == result.count, wrapped
    return result


def _later(stamps: re.Match[str], ticks: int) -> str:
    """Both timestamps of an option, but for an echo of nothing."""
    value, echo = map(int, stamps.groups())
    return f"{(value + ticks) % 2**32}/{(echo + ticks) % 2**32 if echo > 999 else echo}"


def test_the_option_must_be_sent_in_every_segment_but_rst() -> None:
    """RFC 7323, 3.2."""
    rule = "timestamp-always"
    assert found(rule, STAMPS + "20000 a > A 0:1000 ack 0 ts 1020/5000").count == 0
    assert found(rule, STAMPS + "20000 a > A 0:1000 ack 0").count == 1
    assert found(rule, STAMPS + "20000 a > R").count == 0
    assert found(rule, HELLO + "20000 a > A 0:1000 ack 0").count == 0


def test_another_syn_changes_no_echo() -> None:
    """Linux; RFC 7323, 5.3 R2 for the SYN-ACK."""
    again = STAMPS_B[: STAMPS_B.index("    15000")] + "9000 b < S win 64000 ts 1004/0\n9000 b > SA ack 0 ts 5004/{}"
    assert found("timestamp-echo", again.format(1000), host="b").count == 0
    assert found("timestamp-echo", again.format(1004), host="b").count == 0
    assert found("timestamp-echo", again.format(999), host="b").count == 1


def test_the_option_may_be_sent_only_if_the_syn_had_it() -> None:
    """RFC 7323, 3.2."""
    rule = "timestamp-unagreed"
    assert found(rule, STAMPS).count == 0
    assert found(rule, STAMPS_B.replace(" ts 1000/0", "").replace(" ts 1010/5000", ""), host="b").count == 1
    assert found(rule, STAMPS.replace(" ts 5000/1000", "")).count == 1


def test_without_the_ack_bit_the_sender_should_set_tsecr_to_zero() -> None:
    """RFC 7323, 3.2."""
    assert found("timestamp-in-syn", STAMPS).count == 0
    assert found("timestamp-in-syn", STAMPS.replace("1000/0", "1000/7")).count == 1


def test_the_timestamp_value_is_monotonically_non_decreasing() -> None:
    """RFC 7323, 5.2."""
    talk = STAMPS + "20000 a > A 0:1000 ack 0 ts {}/5000"
    assert found("timestamp-moves-back", talk.format(1010)).count == 0
    assert found("timestamp-moves-back", talk.format(1009)).count == 1
    wrapped = talk.replace("1000/", "4294967290/").replace("1010/", "4294967295/")
    assert found("timestamp-moves-back", wrapped.format(3)).count == 0
    from_zero = talk.replace("1000/", "0/").replace("1010/", "3000000000/")
    assert conversation.found("timestamp-moves-back", from_zero.format(3000000010)).count == 0
    assert conversation.found("timestamp-moves-back", from_zero.format(2999999999)).count == 1
    after = "21000 a > A 1000:2000 ack 0 ts {}/5000\n22000 a > A 2000:3000 ack 0 ts {}/5000"
    again = from_zero.format(4294967295) + f"\n{after}"
    assert conversation.found("timestamp-moves-back", again.format(5, 6)).count == 0
    assert conversation.found("timestamp-moves-back", again.format(5, 4294967290)).count == 1


def test_a_timestamp_clock_frequency_in_the_range_of_1_ms_to_1_s_per_tick() -> None:
    """RFC 7323, 5.4."""
    talk = STAMPS + "5010000 a > A 0:1000 ack 0 ts {}/5000"
    assert found("timestamp-clock", talk.format(6010)).count == 0
    assert found("timestamp-clock", talk.format(6020)).count == 1
    assert found("timestamp-clock", talk.format(1014)).count == 0
    assert found("timestamp-clock", talk.format(1012)).count == 1


def test_a_timestamp_of_a_paced_sender_is_that_of_its_turn() -> None:
    """Linux stamps what a timer sends with the time that pacing gives it, and sends it at once."""
    talk = STAMPS + "10000 a > A 0:1000 ack 0 ts 1010/5000\n77000 a > A 1000:2000 ack 0 ts 1077/5000\n"
    assert found("timestamp-clock", talk + "300000 a > A 0:1000 ack 0 ts 1360/5000").count == 0
    assert found("timestamp-clock", talk + "300000 a > A 0:1000 ack 0 ts 1500/5000").count == 1


def test_a_timestamp_behind_a_burst_is_that_of_the_next_turn() -> None:
    """Linux stamps an ACK with the time at which the pace of the burst before lets the next segment go."""
    talk = (
        STAMPS
        + """
        10000 a > A 0:1000 ack 0 ts 1010/5000
        10000 a > A 1000:2000 ack 0 ts 1010/5000
        12000 a < A ack 2000 ts 5011/1010
        14000 a > A 2000:3000 ack 0 ts 1014/5000
        14000 a > A 3000:4000 ack 0 ts 1014/5000
        14300 a < A ack 4000 ts 5014/1014
    """
    )
    assert found("timestamp-clock", talk + "14310 a > A ack 0 ts 1018/5000").count == 0
    assert found("timestamp-clock", talk + "14310 a > A ack 0 ts 1080/5000").count == 1


def test_tsval_is_copied_to_ts_recent_if_the_segment_began_at_the_last_ack_that_was_sent() -> None:
    """RFC 7323, 4.3: the earlier of two segments that are acknowledged together, and none above a gap."""
    delayed = (
        STAMPS_B
        + """
        20000 b < A 0:1000 ack 0 ts 1020/5000
        25000 b < A 1000:2000 ack 0 ts 1025/5000
        25000 b > A ack 2000 ts 5020/{}
    """
    )
    assert found("timestamp-echo", delayed.format(1020), host="b").count == 0
    assert found("timestamp-echo", delayed.format(1025), host="b").count == 1
    assert found("timestamp-echo", delayed.format(1010), host="b").count == 1
    gap = (
        STAMPS_B
        + """
        20000 b < A 1000:2000 ack 0 ts 1020/5000
        20000 b > A ack 0 ts 5015/{} sack 1000:2000
    """
    )
    assert found("timestamp-echo", gap.format(1010), host="b").count == 0
    assert found("timestamp-echo", gap.format(1020), host="b").count == 1


@pytest.mark.parametrize(("dsack", "echoed", "count"), [("", 1020, 0), (" sack 1000:2000", 1020, 1), ("", 1021, 1)])
def test_a_segment_that_came_twice_began_at_the_ack_of_the_first(dsack: str, echoed: int, count: int) -> None:
    """RFC 7323, 4.3: it is answered by D-SACK."""
    talk = (
        STAMPS_B
        + f"""
        20000 b < A 0:1000 ack 0 ts 1010/5000
        21000 b < A 1000:2000 ack 0 ts 1020/5000
        21000 b < A 1000:2000 ack 0 ts 1020/5000
        21000 b > A ack 2000 ts 5016/1010{dsack}
        21000 b > A ack 2000 ts 5016/{echoed} sack 1000:2000
    """
    )
    assert found("timestamp-echo", talk, host="b").count == count


def test_what_tcp_processed_behind_an_ack_that_was_on_its_way_began_at_that_ack() -> None:
    talk = (
        STAMPS_B
        + """
        20000 b < A 0:1000 ack 0 ts 1020/5000
        20010 b < A 1000:2000 ack 0 ts 1021/5000
        20015 b > A ack {} ts 5015/1020
        20020 b < A 2000:3000 ack 0 ts 1021/5000
        20020 b > A ack 3000 ts 5015/1021
    """
    )
    assert found("timestamp-echo", talk.format(1000), host="b").count == 0
    assert found("timestamp-echo", talk.replace("1021/5000\n        20020 b >", "1022/5000\n        20020 b >")
                 .replace("5015/1021", "5015/1022").format(1000), host="b").count == 1  # fmt: skip


def test_a_segment_below_ts_recent_is_not_acceptable() -> None:
    """RFC 7323, 5.3: but by a tick, as Linux has it."""
    talk = (
        STAMPS_B
        + """
        20000 b < A 0:1000 ack 0 ts 1020/5000
        20000 b > A ack 1000 ts 5015/1020
        21000 b < A 1000:2000 ack 0 ts {}/5000
        21000 b > A ack {} ts 5016/1020
    """
    )
    assert found("timestamp-old", talk.format(1018, 1000), host="b").count == 0
    assert found("timestamp-old", talk.format(1018, 2000), host="b").count == 1
    assert found("timestamp-old", talk.format(1019, 2000), host="b").count == 0


def test_linux_takes_the_ack_at_a_change_of_ce_for_one_of_all_that_arrived() -> None:
    talk = (
        STAMPS_B
        + """
        20000 b < A 0:1000 ack 0 ts 1020/5000 ecn 2
        20100 b < A 1000:2000 ack 0 ts 1020/5000 ecn 3
        20100 b > A ack 1000 ts 5015/1020
        21000 b < A 2000:3000 ack 0 ts 1021/5000 ecn 2
        21000 b > A ack 3000 ts 5016/1021
    """
    )
    assert found("timestamp-echo", talk, host="b").count == 1
    assert found("timestamp-echo", talk, host="b", settings={"b": {"cc": "dctcp"}}).count == 0
