# SPDX-License-Identifier: Apache-2.0
"""How connections begin and end, and the numbers and sizes of their packets."""

from __future__ import annotations

from controller.tests.rules.conversation import HELLO, HELLO_B, found

LATER = """
    3000000 a < A
"""
"""A packet much later, up to which the capture is known to last."""


def test_the_syn_that_is_retransmitted_is_the_earliest_segment() -> None:
    """RFC 6298, 5.4."""
    talk = "0 a > S -1:-1 win 64000\n1000000 a > S {0}:{0} win 64000"
    assert found("syn-repeats", talk.format(-1)).count == 0
    assert found("syn-repeats", talk.format(4711)).count == 1
    assert found("syn-repeats", "0 a > S win 64000\n1000000 a > SA ack 0").count == 1


def test_a_syn_ack_acknowledges_the_number_behind_the_syn() -> None:
    """RFC 9293, 3.10.7.2."""
    assert found("syn-ack-number", HELLO_B, host="b").count == 0
    assert found("syn-ack-number", HELLO_B.replace("SA ack 0", "SA ack 1"), host="b").count == 1
    assert found("syn-ack-number", HELLO_B.replace("SA ack 0", "SA ack -1"), host="b").count == 1


def test_once_the_syn_has_been_acked_the_connection_is_established() -> None:
    """RFC 9293, 3.10.7.3: no SYN is sent from then on."""
    rule = "syn-when-established"
    assert found(rule, HELLO + "1000000 a > S").count == 1
    assert found(rule, HELLO_B + "1000000 b > SA ack 0", host="b").count == 1
    assert found(rule, HELLO.replace("10000 a < SA", "5 a > S\n10000 a < SA")).count == 0
    assert found(rule, HELLO + "20000 a < R\n1000000 a > S").count == 0, "another connection"


def test_data_is_queued_for_transmission_after_entering_established_state() -> None:
    """RFC 9293, 3.10.2; TCP Fast Open has data in its SYN."""
    rule = "data-before-established"
    early = "0 b < S win 64000\n0 b > SA ack 0\n10 b > A 0:1000 ack 0"
    assert found(rule, early, host="b").count == 1
    assert found(rule, HELLO_B + "15000 b > A 0:1000 ack 0", host="b").count == 0
    assert found(rule, early.replace("S win", "S -1:99 win", 1), host="b").count == 0


def test_every_octet_of_data_has_a_sequence_number() -> None:
    """RFC 9293, 3.4."""
    talk = HELLO + "20000 a > A 0:1000 ack 0\n20000 a > {} ack 0"
    assert found("sequence-gap", talk.format("A 1000:2000")).count == 0
    assert found("sequence-gap", talk.format("A 500:2000")).count == 0
    assert found("sequence-gap", talk.format("A 1001:2000")).count == 1
    assert found("sequence-gap", talk.format("FA 1001:1001")).count == 1
    assert found("sequence-gap", talk.format("A 1001:2000"), settings={"a": {"tbf_rate": 1}}).undecided


def test_an_ack_has_the_number_snd_nxt() -> None:
    """RFC 9293, 3.10.7.4; a probe has the one before SND.UNA."""
    talk = HELLO + "20000 a > A 0:1000 ack 0\n30000 a < A ack 1000\n40000 a > A {0}:{0} ack 0"
    assert found("ack-sequence", talk.format(1000)).count == 0
    assert found("ack-sequence", talk.format(999)).count == 0
    assert found("ack-sequence", talk.format(998)).count == 1
    assert found("ack-sequence", talk.format(1001)).count == 1


def test_close_means_i_have_no_more_data_to_send() -> None:
    """RFC 9293, 3.6."""
    talk = HELLO + "20000 a > FA 0:1000 ack 0\n30000 a > {} ack 0"
    assert found("fin-is-last", talk.format("A 0:1000")).count == 0
    assert found("fin-is-last", talk.format("FA 0:1000")).count == 0
    assert found("fin-is-last", talk.format("FA 0:900")).count == 1
    assert found("fin-is-last", talk.format("A 1000:1001")).count == 1
    assert found("fin-is-last", talk.format("A 1001:2000")).count == 1


def test_an_acknowledgment_for_the_fin_is_sent() -> None:
    """RFC 9293, 3.10.7.4."""
    talk = HELLO + "20000 a < FA 0:1000 ack 0\n{} a > A ack {}" + LATER
    assert found("fin-acknowledged", talk.format(60000, 1001)).count == 0
    assert found("fin-acknowledged", talk.format(900000, 1001)).count == 1
    assert found("fin-acknowledged", talk.format(20000, 1000)).count == 1
    gap = HELLO + "20000 a < FA 1000:2000 ack 0\n20000 a > A ack 0" + LATER
    assert found("fin-acknowledged", gap).count == 0, "data before it is missing"
    assert found("fin-acknowledged", HELLO + "20000 a < FA 0:1000 ack 0\n20001 a > R" + LATER).count == 0


def test_a_retransmission_of_the_remote_fin_is_acknowledged() -> None:
    """RFC 9293, 3.10.7.4."""
    talk = (
        HELLO
        + """
        20000 a < FA 0:1000 ack 0
        20000 a > FA ack 1001
        30000 a < A ack 1
        {} a < FA 0:1000 ack 1
        {} a > A ack 1001
        """
        + LATER
    )
    rule = "fin-again-acknowledged"
    assert found(rule, talk.format(1000000, 1000000)).count == 0
    assert found(rule, talk.format(1000000, 1900000)).count == 1
    assert found(rule, talk.format(400000, 1900000)).count == 0, "within tcp_invalid_ratelimit"


def test_a_rst_deletes_the_connection() -> None:
    """RFC 9293, 3.10.7.4: if it has the number that is expected (RFC 5961, 3.2)."""
    talk = HELLO + "20000 a < R {0}:{0}\n30000 a > A 0:1000 ack 0"
    assert found("reset-ends", talk.format(0)).count == 1
    assert found("reset-ends", talk.format(500)).count == 0
    assert found("reset-ends", HELLO + "20000 a > R\n30000 a > A 0:1000 ack 0").count == 1
    assert found("reset-ends", HELLO + "20000 a > R\n30000 a > R").count == 0


def test_a_rst_has_the_number_that_the_peer_expects() -> None:
    """RFC 9293, 3.5.2."""
    talk = HELLO + "20000 a > A 0:1000 ack 0\n30000 a < A ack 500\n40000 a > R {0}:{0}"
    assert found("reset-number", talk.format(1000)).count == 0
    assert found("reset-number", talk.format(500)).count == 0
    assert found("reset-number", talk.format(700)).count == 1
    several = HELLO + "20000 a > A 0:2000 ack 0 segs 2\n30000 a < A ack 500\n30000 a < A ack 1000\n"
    assert found("reset-number", several + "30000 a > R 500:500\n30000 a > R 1000:1000").count == 0
    assert found("reset-number", several + "40000 a > R 500:500").count == 1


def test_the_effective_send_mss_must_be_the_smaller_of_both_ends() -> None:
    """RFC 9293, 3.7.1."""
    talk = HELLO + "20000 a > A 0:{} ack 0 segs {}"
    usual, jumbo = {"mtu": 1500}, {"mtu": 9000}
    assert found("segment-size", talk.format(1448, 1)).count == 0
    assert found("segment-size", talk.format(1449, 1)).count == 1
    assert found("segment-size", talk.format(2896, 2)).count == 0
    assert found("segment-size", talk.format(8948, 1), settings={"a": jumbo, "b": jumbo}).count == 0
    assert found("segment-size", talk.format(8948, 1), settings={"a": jumbo, "b": usual}).count == 1
