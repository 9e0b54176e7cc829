# SPDX-License-Identifier: Apache-2.0
"""ECN, DCTCP's echo and Accurate ECN."""

from __future__ import annotations

import pytest

from controller.tests.rules.conversation import HELLO, HELLO_B, found

ECN = """
    0     a > SEC win 64000
    10000 a < SAE ack 0 win 64000
    10000 a > A ack 0
"""
ECN_B = """
    5000  b < SEC win 64000
    5000  b > SAE ack 0 win 64000
    15000 b < A ack 0
"""
DCTCP = {host: {"cc": "dctcp"} for host in "ab"}
HALF_AGREED = """
    0     a > SEC win 64000
    10000 a < SA ack 0 win 64000
    10000 a > A ack 0
"""


def test_otherwise_it_must_not_send_an_ecn_setup_syn_ack() -> None:
    """RFC 3168, 6.1.1."""
    assert found("ecn-setup-syn-ack", ECN_B, host="b").count == 0
    assert found("ecn-setup-syn-ack", ECN_B.replace("SEC", "SE"), host="b").count == 1
    assert found("ecn-setup-syn-ack", HELLO_B, host="b").count == 0


def test_a_host_must_not_set_ect_on_syn_or_syn_ack_packets() -> None:
    capable = ECN.replace("SEC win 64000", "SEC win 64000 ecn 2")
    assert found("ecn-ect-on-syn", ECN).count == 0
    assert found("ecn-ect-on-syn", capable).count == 1
    assert found("ecn-ect-on-syn", capable, settings=DCTCP).count == 0
    assert found("ecn-ect-on-syn", capable, options={"cc": "dctcp"}).count == 0
    late = {"cc": "reno", "generator": "iperf3"}
    assert found("ecn-ect-on-syn", capable, options=late).count == 1
    assert found("ecn-ect-on-syn", capable, options=late, settings=DCTCP).count == 0, "it sets reno afterwards"


@pytest.mark.parametrize("hello", [HELLO, HALF_AGREED])
def test_a_host_must_not_set_ect_on_data_packets_unless_both_sent_setup_packets(hello: str) -> None:
    talk = "20000 a > A 0:1000 ack 0 ecn {}"
    assert found("ecn-ect-unagreed", ECN + talk.format(2)).count == 0
    assert found("ecn-ect-unagreed", hello + talk.format(0)).count == 0
    assert found("ecn-ect-unagreed", hello + talk.format(2)).count == 1


def test_flags_of_features_that_are_not_implemented_must_be_zero() -> None:
    """RFC 9293, 3.1."""
    for flags in ("20000 a > AE ack 0", "20000 a > AC 0:1000 ack 0", "20000 a > A ack 0 ae 1"):
        assert found("ecn-flags-unagreed", HELLO + flags).count == 1
        assert found("ecn-flags-unagreed", ECN + flags).count == 0
    assert found("ecn-flags-unagreed", HALF_AGREED + "20000 a > A ack 0").count == 0


def test_pure_acknowledgement_packets_must_be_sent_with_the_not_ect_codepoint() -> None:
    """RFC 3168, 6.1.4."""
    talk = "20000 a > A ack 0 ecn {}"
    assert found("ecn-ect-on-ack", ECN + talk.format(0)).count == 0
    assert found("ecn-ect-on-ack", ECN + talk.format(2)).count == 1
    assert found("ecn-ect-on-ack", ECN + "20000 a > A 0:1 ack 0 ecn 2").count == 0


def test_retransmitted_data_packets_must_not_have_an_ect_codepoint() -> None:
    """RFC 3168, 6.1.5."""
    talk = (
        ECN
        + """
        20000 a > A 0:1000 ack 0 ecn 2
        500000 a > A 0:1000 ack 0 ecn {}
    """
    )
    assert found("ecn-ect-on-retransmission", talk.format(0)).count == 0
    assert found("ecn-ect-on-retransmission", talk.format(2)).count == 1
    capable = talk.format(2).replace("SEC win 64000", "SEC win 64000 ecn 2")
    assert found("ecn-ect-on-retransmission", capable).count == 0


def test_new_data_packets_are_transmitted_with_an_ect_codepoint() -> None:
    """RFC 3168, 6.1.2."""
    talk = "20000 a > A 0:1000 ack 0 ecn {}"
    assert found("ecn-ect-on-new-data", ECN + talk.format(1)).count == 0
    assert found("ecn-ect-on-new-data", ECN + talk.format(0)).count == 1
    assert found("ecn-ect-on-new-data", HELLO + talk.format(0)).count == 0


def test_the_ce_codepoint_is_set_by_a_router() -> None:
    """RFC 3168, 5."""
    talk = ECN + "20000 a > A 0:1000 ack 0 ecn {}"
    assert found("ecn-ce-sent", talk.format(2)).count == 0
    assert found("ecn-ce-sent", talk.format(3)).count == 1
    assert found("ecn-ce-sent", talk.format(3), settings={"a": {"htb_ecn_threshold": 1}}).undecided


def test_the_receiver_continues_to_set_ecn_echo_until_it_receives_a_cwr_packet() -> None:
    """RFC 3168, 6.1.3."""
    talk = (
        ECN_B
        + """
        20000 b < A 0:1000 ack 0 ecn 3
        20100 b > A{} ack 1000
        21000 b < A 1000:2000 ack 0 ecn 2
        21100 b > A{} ack 2000
        22000 b < AC 2000:3000 ack 0 ecn {}
        22100 b > A{} ack 3000
    """
    )
    assert found("ecn-echo", talk.format("E", "E", 2, ""), host="b").count == 0
    assert found("ecn-echo", talk.format("", "", 2, ""), host="b").count == 2
    assert found("ecn-echo", talk.format("E", "", 2, ""), host="b").count == 1
    assert found("ecn-echo", talk.format("E", "E", 3, ""), host="b").count == 1
    assert found("ecn-echo", talk.format("", "", 2, ""), host="b", settings=DCTCP).count == 0


def test_after_the_cwr_packet_acknowledgments_do_not_have_the_ecn_echo_flag() -> None:
    """RFC 3168, 6.1.3."""
    talk = (
        ECN_B
        + """
        20000 b < A 0:1000 ack 0 ecn 3
        20100 b > AE ack 1000
        22000 b < AC 1000:2000 ack 0 ecn {}
        22100 b > A{} ack 2000
    """
    )
    rule = "ecn-echo-without-ce"
    assert found(rule, talk.format(2, ""), host="b").count == 0
    assert found(rule, talk.format(2, "E"), host="b").count == 1
    assert found(rule, talk.format(3, "E"), host="b").count == 0
    assert found(rule, ECN_B + "20000 b > AE ack 0", host="b").count == 1


ECHO = (
    ECN
    + """
    20000 a > A 0:1000 ack 0 ecn 2
    20000 a > A 1000:2000 ack 0 ecn 2
    30000 a < AE ack 1000
    30000 a > A{} 2000:3000 ack 0 ecn 2
    30100 a > A{} 3000:4000 ack 0 ecn 2
    31000 a < AE ack 2000
    31100 a > A{} 4000:5000 ack 0 ecn 2
    """
)


def test_the_sender_sets_cwr_in_the_first_new_data_packet_after_the_window_reduction() -> None:
    """RFC 3168, 6.1.2."""
    rule = "ecn-cwr-after-ece"
    assert found(rule, ECHO.format("C", "", "")).count == 0
    assert found(rule, ECHO.format("", "C", "")).count == 0, "what left at the instant of the ACK"
    assert found(rule, ECHO.format("", "", "")).count == 2
    assert found(rule, ECHO.replace("a < AE", "a < A").format("", "", "")).count == 0


def test_a_window_that_was_reduced_for_a_loss_is_not_reduced_again() -> None:
    """RFC 3168, 6.1.2: only once in response to a series of dropped and/or CE packets from a single window."""
    talk = (
        ECN
        + """
        20000 a > A 0:1000 ack 0 ecn 2
        20000 a > A 1000:2000 ack 0 ecn 2
        {} a > A 0:1000 ack 0
        30000 a < AE ack 1000
        30100 a > A 2000:3000 ack 0 ecn 2
    """
    )
    assert found("ecn-cwr-after-ece", talk.format(29000)).count == 0
    assert found("ecn-cwr-after-ece", talk.format(40000)).count == 1


def test_the_sender_should_set_the_cwr_bit_only_on_the_first_new_data_packet() -> None:
    """RFC 3168, 6.1.2."""
    assert found("ecn-cwr-once", ECHO.format("C", "", "C")).count == 0, "an ACK with ECE came between"
    assert found("ecn-cwr-once", ECHO.format("C", "C", "")).count == 1


def test_the_sender_sets_the_cwr_flag_when_it_reduces_its_congestion_window_for_any_reason() -> None:
    """RFC 3168, 6.1.2: a reason that packets do not show, such as a delay, is one too; not twice within a window."""
    silent = ECHO.replace("a < AE", "a < A")
    assert found("ecn-cwr-once", silent.format("C", "", "")).count == 0
    assert found("ecn-cwr-once", silent.format("C", "", "C")).count == 1, "2000:3000 is not acknowledged yet"
    later = silent.format("C", "", "") + "41000 a < A ack 5000\n    41100 a > AC 5000:6000 ack 0 ecn 2"
    assert found("ecn-cwr-once", later).count == 0


def test_the_cwr_bit_should_not_be_set_on_retransmitted_packets() -> None:
    """RFC 3168, 6.1.2."""
    again = ECHO.format("C", "", "") + "40000 a > A{} 2000:3000 ack 0"
    assert found("ecn-cwr-on-new-data", again.format("")).count == 0
    assert found("ecn-cwr-on-new-data", again.format("C")).count == 1
    assert found("ecn-cwr-on-new-data", ECHO.format("C", "", "") + "40000 a > AC ack 0").count == 1


def test_the_ece_flag_must_be_set_if_and_only_if_dctcp_ce_is_true() -> None:
    """RFC 8257, 3.2: the ACK of what came before a change has the mark of that."""
    talk = (
        ECN_B
        + """
        20000 b < A 0:1000 ack 0 ecn 3
        20000 b > A{} ack 1000
        20100 b < A 1000:2000 ack 0 ecn 3
        20200 b < A 2000:3000 ack 0 ecn 2
        20200 b > A{} ack {}
        20200 b > A{} ack 3000
    """
    )
    rule, more = "dctcp-echo", {"host": "b", "settings": DCTCP}
    assert found(rule, talk.format("E", "E", 2000, ""), **more).count == 0
    assert found(rule, talk.format("", "E", 2000, ""), **more).count == 1
    assert found(rule, talk.format("E", "E", 3000, ""), **more).count == 1
    assert found(rule, talk.format("E", "E", 2000, "E"), **more).count == 1
    assert found(rule, talk.format("", "", 3000, "E"), host="b").count == 0
    gap = talk.format("E", "E", 2000, "").replace("2000:3000", "4000:5000").replace("ack 3000", "ack 2000")
    assert found(rule, gap, **more).count == 0


ACCURATE_B = """
    5000  b < SEC win 64000 ae 1
    5000  b > SAC ack 0 win 64000
    15000 b < AC ack 0
"""


def test_the_data_receiver_encodes_the_three_least_significant_bits_of_its_counter_of_ce_packets() -> None:
    """RFC 9768, 3.2.2: the counter begins at 5."""
    talk = (
        ACCURATE_B
        + """
        20000 b < AEC 0:3000 ack 0 ecn 3 segs 3 ae 1
        20100 b > A{0} ack 3000 ae {1}
        20200 b < AEC 3000:4000 ack 0 ecn 1 ae 1
        20300 b > A{0} ack 4000 ae {1}
    """
    )
    assert found("accecn-ace", talk.format("", 0), host="b").count == 0
    unmarked = talk.replace("ecn 3", "ecn 2")
    assert found("accecn-ace", unmarked.format("E", 1), host="b").count == 0
    assert found("accecn-ace", unmarked.format("CE", 1), host="b").count == 2
    assert found("accecn-ace", talk.format("C", 1), host="b").count == 2
    result = found("accecn-ace", talk.format("E", 0), host="b")
    assert result.count == 2
    assert result.first[0].text == "sends an ACK of 3000 with ACE 1, after 3 packets with CE: want 0"
    assert found("accecn-ace", talk.format("E", 0).replace("SAC", "SAE"), host="b").count == 0, "RFC 3168's"


@pytest.mark.parametrize(("flags", "syn_ack", "count"), [("C", 3, 0), ("EC", 3, 1), ("C", 2, 1), ("E", 2, 0)])
def test_a_syn_ack_with_ce_counts(flags: str, syn_ack: int, count: int) -> None:
    """RFC 9768, 3.2.2.1; tcp_ecn_rcv_synack()."""
    talk = f"""
        0     a > SEC win 64000 ae 1
        10000 a < SA ack 0 win 64000 ae 1 ecn {syn_ack}
        10000 a > AC ack 0 ae 1
        10000 a > AE 0:1000 ack 0 ae 1
        20000 a < AE ack 1000 ae 1
        21000 a > A{flags} 1000:2000 ack 0 ae 1
    """
    assert found("accecn-ace", talk).count == count


def test_the_accecn_option_has_the_least_significant_bits_of_the_counters_of_bytes() -> None:
    """RFC 9768, 3.2.3: they begin at 1, 0 and 1."""
    talk = (
        ACCURATE_B
        + """
        20000 b < AE 0:1000 ack 0 ecn 1 ae 1
        20000 b < AE 1000:1500 ack 0 ecn 3 ae 1
        20100 b > AC ack 1500 ae 1 accecn_e0 1 accecn_ce {} accecn_e1 {}
    """
    )
    assert found("accecn-bytes", talk.format(500, 1001), host="b").count == 0
    assert found("accecn-bytes", talk.format(500, 1000), host="b").count == 1
    assert found("accecn-bytes", talk.format(1500, 1001), host="b").count == 1


def test_a_dctcp_receiver_acknowledges_data_with_ce_and_without_it_apart() -> None:
    """RFC 8257, 3.2."""
    talk = (
        ECN_B
        + """
        20000 b < A 0:1000 ack 0 ecn 3
        20100 b < A 1000:2000 ack 0 ecn 2
        {}
        20100 b > A ack 2000
    """
    )
    rule, more = "dctcp-marks-apart", {"host": "b", "settings": DCTCP}
    assert found(rule, talk.format("20100 b > AE ack 1000"), **more).count == 0
    result = found(rule, talk.format(""), **more)
    assert result.count == 1
    assert result.first[0].text == "received 0 with CE, and acknowledged it without ECE, up to 2000"
    assert found(rule, talk.format("20100 b > A ack 1000"), **more).count == 1
    assert found(rule, talk.format(""), host="b").count == 0


def test_the_flags_of_the_syn_ack_feed_back_the_ecn_field_that_arrived_on_the_syn() -> None:
    """RFC 9768, 3.1.5; the ACK behind it feeds back the SYN-ACK's."""
    rule = "accecn-handshake"
    assert found(rule, ACCURATE_B, host="b").count == 0
    marked = ACCURATE_B.replace("ae 1", "ae 1 ecn 3")
    assert found(rule, marked, host="b").count == 1
    assert found(rule, marked.replace("SAC ack 0", "SAC ack 0 ae 1"), host="b").count == 0
    client = ACCURATE_B.replace("b <", "a >>").replace("b >", "a <").replace(">>", ">")
    assert found(rule, client).count == 0
    assert found(rule, client.replace("AC ack 0\n", "AE ack 0\n").replace("SAE", "SAC")).count == 1
