# SPDX-License-Identifier: Apache-2.0
"""Acknowledgements."""

from __future__ import annotations

from controller.tests.rules.conversation import HELLO, HELLO_B, found


def test_the_acknowledgment_number_is_the_next_octet_that_is_expected() -> None:
    """RFC 9293, 3.4."""
    gap = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b < A 2000:3000 ack 0
        20000 b > A ack {} sack 2000:3000
    """
    )
    assert found("ack-of-unsent", gap.format(1000), host="b").count == 0
    result = found("ack-of-unsent", gap.format(3000), host="b")
    assert result.count == 1
    assert result.first[0].text == "acknowledges 3000, but only up to 1000 had arrived"


def test_data_that_fills_a_gap_is_acknowledged_with_what_lies_behind_it() -> None:
    filled = (
        HELLO_B
        + """
        20000 b < A 1000:2000 ack 0
        20000 b < A 0:1000 ack 0
        20000 b > A ack {}
    """
    )
    assert found("ack-of-unsent", filled.format(2000), host="b").count == 0
    assert found("ack-of-unsent", filled.format(2001), host="b").count == 1


def test_rcv_nxt_is_advanced_never_back() -> None:
    """RFC 9293, 3.10.7.4."""
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000
        21000 b > A ack {}
    """
    )
    assert found("ack-moves-back", talk.format(1000), host="b").count == 0
    assert found("ack-moves-back", talk.format(999), host="b").count == 1


def test_segments_fit_the_current_window() -> None:
    """RFC 9293, 3.8.6: a probe of one byte is let pass."""
    full = (
        HELLO.replace("64000", "1500")
        + """
        20000 a > A 0:1000 ack 0
        30000 a < A ack 1000 win 500
        30000 a > A {} ack 0
    """
    )
    assert found("beyond-window", full.format("1000:1500")).count == 0
    assert found("beyond-window", full.format("1500:1501")).count == 0
    assert found("beyond-window", full.format("1000:1502")).count == 1


LATER = """
    900000 b < A
"""
"""A packet much later, up to which the capture is known to last."""


def after_hello(text: str) -> str:
    return HELLO_B + text + LATER


def test_an_ack_should_be_generated_for_at_least_every_second_full_sized_segment() -> None:
    """RFC 5681, 4.2."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20010 b < A 1000:2000 ack 0
        {} b > A ack 2000
        70000 b < A 2000:3000 ack 0
        {} b > A ack 3000
        """
    )
    rule = "ack-every-second-segment"
    assert found(rule, talk.format(20011, 110000), host="b").count == 0
    result = found(rule, talk.format(60010, 110000), host="b")
    assert result.count == 1
    assert result.first[0].text == "received up to 2000 and had acknowledged 0; segments have 1000 bytes"


def test_packets_that_came_while_much_was_read_are_acknowledged_behind_it() -> None:
    talk = after_hello(
        """
        20000 b < A 1000:4001000 ack 0 segs 4000
        20000 b > A ack 0 sack 1000:4001000
        20100 b < A 0:1000 ack 0
        20100 b > A ack 4001000
        20110 b < A 4001000:4003000 ack 0 segs 2
        {} b > A ack 4003000 win 65537
        """
    )
    assert found("ack-every-second-segment", talk.format(20600), host="b").count == 0
    assert found("ack-every-second-segment", talk.format(20900), host="b").count == 1


def test_acks_are_not_judged_where_the_host_has_a_queue_the_path_corrupts_or_the_reader_is_slow() -> None:
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20010 b < A 1000:2000 ack 0
        """
    )
    rule = "ack-every-second-segment"
    assert found(rule, talk, host="b").count == 1
    small = talk.replace("0:1000", "0:200").replace("1000:2000", "200:400")
    assert found(rule, small, host="b").count == 0, "until a longer one comes, a full segment has 536 bytes"
    assert found(rule, talk, host="b", settings={"b": {"htb_rate": 1}}).undecided
    assert found(rule, talk, host="b", settings={"switch": {"fate": "corrupt data 3 of f"}}).undecided
    assert found(rule, talk, host="b", settings={"switch": {"fate": "corrupt data 3 of g"}}).count == 1
    assert found(rule, talk, host="b", options={"read_rate": 1000}).undecided


def test_what_ends_a_write_is_acknowledged_once_it_is_read() -> None:
    rule, ordinary = "ack-of-pushed-data", {"lowat": 1}
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000
        30000 b < {} ack 0
        {} b > A ack 2000
        """
    )
    in_time, late = talk.format("PA 1000:2000", 30099), talk.format("PA 1000:2000", 70000)
    assert found(rule, in_time, host="b", options=ordinary).count == 0
    result = found(rule, late, host="b", options=ordinary)
    assert result.count == 1
    assert result.first[0].text == "received up to 2000 with PSH, all that was sent, and sent no ACK at once"
    assert found(rule, late, host="b", options={"lowat": 4000}).count == 0, "it waits for more before it reads"
    assert found(rule, late, host="b", options={**ordinary, "read_rate": 1000}).undecided
    assert found(rule, late, host="b", options=ordinary, settings={"b": {"kernel": "6.1"}}).count == 0
    assert found(rule, late, host="b", options=ordinary, settings={"b": {"kernel": "6.6"}}).count == 1
    assert found(rule, late.replace("PA", "A"), host="b", options=ordinary).count == 0, "more may follow"
    gap = talk.format("PA 1500:2000", 70000)
    assert found(rule, gap, host="b", options=ordinary).count == 0, "not all that was sent has arrived"
    answered = late.replace("> A ack 1000", "> PA 0:500 ack 1000")
    assert found(rule, answered, host="b", options=ordinary).count == 0, "an answer may take the ACK with it"


def test_segments_of_a_size_below_the_mss_are_full_ones_for_the_receiver_when_two_came() -> None:
    rule = "ack-of-pushed-data"
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000
        30000 b < PA 1000:1700 ack 0
        30000 b > A ack 1700
        40000 b < PA 1700:{0} ack 0
        80000 b > A ack {0}
        """
    )
    assert found(rule, talk.format(2400), host="b", options={"lowat": 1}).count == 0
    assert found(rule, talk.format(2500), host="b", options={"lowat": 1}).count == 1


def test_an_ack_must_be_generated_within_500_ms_of_the_first_unacknowledged_packet() -> None:
    """RFC 5681, 4.2."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        {} b > A ack 1000
        """
    )
    assert found("ack-delay", talk.format(519000), host="b").count == 0
    assert found("ack-delay", talk.format(521000), host="b").count == 1


def test_nothing_is_owed_once_the_connection_is_reset() -> None:
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        30000 b < R
        """
    )
    assert found("ack-delay", talk, host="b").count == 0


def test_an_immediate_duplicate_ack_when_an_out_of_order_segment_arrives() -> None:
    """RFC 5681, 4.2."""
    talk = after_hello(
        """
        20000 b < A 1000:2000 ack 0
        {} b > A ack 0 sack 1000:2000
        """
    )
    assert found("ack-out-of-order", talk.format(20001), host="b").count == 0
    assert found("ack-out-of-order", talk.format(20300), host="b").count == 1


def test_linux_compresses_acks_behind_the_third_duplicate() -> None:
    talk = HELLO_B + "".join(
        f"""
        {20000 + 10 * number} b < A {1000 * number}:{1000 * number + 1000} ack 0
        {20000 + 10 * number} b > A ack 0 sack 1000:{1000 * number + 1000}
        """
        for number in (1, 2, 3)
    )
    talk += """
        20040 b < A 4000:5000 ack 0
        {} b > A ack 0 sack 1000:5000
    """
    talk = talk + LATER
    off = {"b": {"net.ipv4.tcp_comp_sack_nr": 0}}
    assert found("ack-out-of-order", talk.format(21000), host="b").count == 0
    assert found("ack-out-of-order", talk.format(21000), host="b", settings=off).count == 1
    assert found("ack-out-of-order", talk.format(21300), host="b").count == 1


def test_an_immediate_ack_when_the_segment_fills_in_all_or_part_of_a_gap() -> None:
    """RFC 5681, 4.2."""
    talk = after_hello(
        """
        20000 b < A 2000:3000 ack 0
        20000 b > A ack 0 sack 2000:3000
        21000 b < A 0:1000 ack 0
        {} b > A ack 1000 sack 2000:3000
        22000 b < A 1000:2000 ack 0
        {} b > A ack 3000
        """
    )
    assert found("ack-filled-gap", talk.format(21000, 22000), host="b").count == 0
    assert found("ack-filled-gap", talk.format(21200, 22000), host="b").count == 1
    assert found("ack-filled-gap", talk.format(21000, 62000), host="b").count == 1


def test_a_receiver_must_not_generate_more_than_a_single_ack_for_every_incoming_segment() -> None:
    """RFC 5681, 4.2: other than to update the offered window."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20010 b < A 1000:2000 ack 0
        20010 b > A ack 1000 win 65536
        20010 b > A ack 2000 win 64536
        20020 b > A ack 2000 win {}
        """
    )
    assert found("acks-per-segment", talk.format(65536), host="b").count == 0
    result = found("acks-per-segment", talk.format(64536), host="b")
    assert result.count == 1
    assert result.first[0].text == "sends ACK 1 after 0 packets since the ACK before"


def test_a_window_may_be_opened_to_where_it_was() -> None:
    talk = after_hello(
        """
        20000 b > A ack 0 win 8000
        20010 b < A 0:1000 ack 0
        20010 b > A ack 0 win 0
        20020 b > A ack 0 win {}
        """
    )
    assert found("acks-per-segment", talk.format(8000), host="b").count == 0
    assert found("acks-per-segment", talk.format(0), host="b").count == 1


def test_acks_of_an_instant_are_as_many_as_its_packets() -> None:
    talk = after_hello(
        """
        19000 b > A ack 0 win 67000
        20000 b < A 1000:2000 ack 0
        20000 b < A 3000:4000 ack 0
        20000 b > A ack 0 win 67000 sack 1000:2000
        20000 b > A ack 0 win 67000 sack 3000:4000,1000:2000
        {}
        """
    )
    assert found("acks-per-segment", talk.format(""), host="b").count == 0
    extra = (
        2 * "20000 b > A ack 0 win 67000 sack 3000:4000,1000:2000\n"
    )  # a packet of the handshake was answered before
    assert found("acks-per-segment", talk.format(extra), host="b").count == 1


def test_ack_is_rcv_nxt() -> None:
    """RFC 9293, 3.10.7.4."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        {} b > A 0:10 ack {}
        """
    )
    assert found("ack-is-rcv-nxt", talk.format(30000, 1000), host="b").count == 0
    assert found("ack-is-rcv-nxt", talk.format(20050, 0), host="b").count == 0
    assert found("ack-is-rcv-nxt", talk.format(30000, 0), host="b").count == 1


def test_data_for_which_there_was_no_memory_need_not_be_acknowledged() -> None:
    """RFC 9293, 3.8.6: the zero window below what arrived shows it."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 0 win {}
        600000 b > A ack 0 win 0
        """
    )
    assert found("ack-is-rcv-nxt", talk.format(0), host="b").count == 0
    assert found("ack-delay", talk.format(0), host="b").count == 0
    assert found("ack-delay", talk.format(5000).replace("win 0", "win 5000"), host="b").count == 1


def test_once_a_connection_is_established_the_ack_is_always_sent() -> None:
    """RFC 9293, 3.1."""
    talk = HELLO_B + "20000 b > {} 0:1000"
    assert found("ack-flag", talk.format("A"), host="b").count == 0
    assert found("ack-flag", talk.format("P"), host="b").count == 1
    assert found("ack-flag", talk.format("R"), host="b").count == 0


def test_a_segment_that_is_not_acceptable_is_answered() -> None:
    """RFC 9293, 3.10.7.4."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000
        30000 b < A 0:1000 ack 0
        {} b > A ack 1000 sack 0:1000
        """
    )
    assert found("ack-of-old-data", talk.format(30000), host="b").count == 0
    assert found("ack-of-old-data", talk.format(529000), host="b").count == 0
    assert found("ack-of-old-data", talk.format(531000), host="b").count == 1


def test_when_ce_changes_dctcp_sends_an_immediate_ack() -> None:
    """RFC 8257, 3.2."""
    talk = after_hello(
        """
        20000 b < A 0:1000 ack 0 ecn 2
        20000 b > A ack 1000
        21000 b < A 1000:2000 ack 0 ecn 3
        {} b > AE ack 2000
        22000 b < A 2000:3000 ack 0 ecn 3
        23000 b < A 3000:4000 ack 0 ecn 2
        23000 b > AE ack 3000
        {} b > A ack 4000
        """
    )
    dctcp = {"b": {"cc": "dctcp"}}
    rule = "dctcp-ce-change"
    assert found(rule, talk.format(21000, 23000), host="b", settings=dctcp).count == 0
    assert found(rule, talk.format(21500, 23000), host="b", settings=dctcp).count == 1
    assert found(rule, talk.format(21000, 63000), host="b", settings=dctcp).count == 1
    assert found(rule, talk.format(21000, 63000), host="b").count == 0
