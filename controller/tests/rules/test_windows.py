# SPDX-License-Identifier: Apache-2.0
"""Windows, their probes, and small segments."""

from __future__ import annotations

from controller.tests.rules.conversation import HELLO, HELLO_B, found

LATER = """
    9000000 b < A
"""


def test_a_receiver_should_not_shrink_the_window() -> None:
    """RFC 9293, 3.8.6."""
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000 win 64536
        30000 b < A 1000:2000 ack 0
        30000 b > A ack {}
        """
    )
    rule = "window-moves-back"
    assert found(rule, talk.format("2000 win 63536"), host="b").count == 0
    result = found(rule, talk.format("2000 win 63535"), host="b")
    assert result.first[0].text == "offers up to 65535 after 65536"
    assert result.first[0].proof == (4,)
    shrinks = {"b": {"net.ipv4.tcp_shrink_window": 1}}
    assert found(rule, talk.format("2000 win 63535"), host="b", settings=shrinks).count == 0


def test_linux_without_memory_takes_its_window_back() -> None:
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack {} win 0
        30000 b > A ack 1000 win 20000
        """
    )
    assert found("window-moves-back", talk.format(0), host="b").count == 0
    assert found("window-moves-back", talk.format(1000), host="b").count == 2


def test_the_ack_of_what_came_before_a_ce_change_has_the_later_window() -> None:
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0 ecn 2
        20000 b > A ack 1000 win 64536
        30000 b < A 1000:2000 ack 0 ecn 2
        31000 b < A 2000:3000 ack 0 ecn 3
        31000 b > A ack {} win 62536
        31000 b > AE ack 3000 win 62536
        """
    )
    assert found("window-moves-back", talk.format(2000), host="b", settings={"b": {"cc": "dctcp"}}).count == 0
    assert found("window-moves-back", talk.format(2000), host="b").count == 1
    assert found("window-moves-back", talk.format(3000), host="b", settings={"b": {"cc": "dctcp"}}).count == 0


PROBED = (
    HELLO
    + """
    20000 a > A 0:1000 ack 0
    30000 a < A ack 1000 win 0
    230000 a > A 999:999 ack 0
    240000 a < A ack 1000 win 0
    {} a > A 999:999 ack 0
    640000 a < A ack 1000 win {}
    {} a > A 999:999 ack 0
    """
)


def test_the_interval_between_probes_should_increase_exponentially() -> None:
    """RFC 9293, 3.8.6.1."""
    rule = "window-probe-backoff"
    assert found(rule, PROBED.format(630000, 0, 1430000)).count == 0
    assert found(rule, PROBED.format(630000, 0, 1030000)).count == 1
    assert found(rule, PROBED.format(630000, 500, 1030000)).count == 0
    assert found(rule, PROBED.format(630000, 0, 1030000), options={"keepalive": "1s"}).undecided


def test_a_zero_window_must_still_be_answered() -> None:
    """RFC 9293, 3.8.6.1."""
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000 win 0
        {} b < A {} ack 0
        {} b > A ack 1000 win 0
        """
        + LATER
    )
    rule = "window-probe-answered"
    assert found(rule, talk.format(300000, "999:999", 300000), host="b").count == 0
    assert found(rule, talk.format(300000, "64000:64001", 300000), host="b").count == 0
    assert found(rule, talk.format(300000, "999:999", 400000), host="b").count == 1
    assert found(rule, talk.format(300000, "64000:64001", 400000), host="b").count == 1


def test_linux_answers_empty_probes_at_most_twice_a_second() -> None:
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000 win 0
        300000 b < A 999:999 ack 0
        300000 b > A ack 1000 win 0
        {} b < A 999:999 ack 0
        """
        + LATER
    )
    assert found("window-probe-answered", talk.format(700000), host="b").count == 0
    assert found("window-probe-answered", talk.format(900000), host="b").count == 1
    late = talk.replace("300000 b < A 999:999", "300000 b < A 500:500").format(700000)
    skipped = {"b": {"snmp": {"TcpExt.TCPACKSkippedSeq": 1}}}
    assert found("window-probe-answered", late, host="b").count == 1
    assert found("window-probe-answered", late, host="b", counters=skipped).count == 0


def test_a_receiver_must_avoid_silly_windows() -> None:
    """RFC 9293, 3.8.6.2.2."""
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000 win 5000
        30000 b < A 1000:64000 ack 0 segs 63
        30000 b > A ack 64000 win 0
        40000 b > A ack 64000 win {}
        """
    )
    assert found("silly-window-offered", talk.format(1000), host="b").count == 0
    assert found("silly-window-offered", talk.format(0), host="b").count == 0
    assert found("silly-window-offered", talk.format(999), host="b").count == 1


def test_a_sender_must_avoid_silly_windows() -> None:
    """RFC 9293, 3.8.6.2.1: it waits for 0.1 s at least; Linux sends the rest of a window with what fills it."""
    talk = (
        HELLO.replace("64000", "2000")
        + """
        20000 a > A 0:1000 ack 0
        20000 a > A 1000:{0} ack 0
        30000 a < A ack {0} win {1}
        {2} a > A {0}:{3} ack 0
        900000 a < A ack {3} win 64000
        900000 a > A 4000:5000 ack 0
        """
    )
    rule = "silly-window-sent"
    assert found(rule, talk.format(2000, 100, 30000, 2100)).count == 1
    assert found(rule, talk.format(2000, 100, 130000, 2100)).count == 0
    assert found(rule, talk.format(2000, 1000, 30000, 3000)).count == 0
    assert found(rule, talk.format(2000, 200, 30000, 2100)).count == 0
    probing = {"a": {"net.ipv4.tcp_mtu_probing": 1}}
    assert found(rule, talk.format(2000, 100, 30000, 2100), settings=probing).undecided


def test_what_a_window_leaves_behind_full_segments_is_sent_with_them() -> None:
    talk = (
        HELLO.replace("64000", "2300")
        + """
        20000 a > A 0:1000 ack 0
        20000 a > A 1000:2000 ack 0
        {} a > A 2000:2300 ack 0
        40000 a < A ack 2300 win 64000
        40000 a > A 2300:3300 ack 0
        """
    )
    assert found("silly-window-sent", talk.format(20000)).count == 0
    assert found("silly-window-sent", talk.format(25000)).count == 1


def test_a_full_sized_segment_has_half_of_the_largest_window_at_most() -> None:
    talk = (
        HELLO.replace("64000", "2000")
        + """
        20000 a > A 0:1000 ack 0
        30000 a < A ack 1000 win 1990
        30000 a > A 1000:2000 ack 0
        {} a > A 2000:2990 ack 0
        40000 a < A ack 2990 win 64000
        40000 a > A 2990:7000 ack 0
        """
    )
    assert found("silly-window-sent", talk.format(30000)).count == 0
    assert found("silly-window-sent", talk.format(35000)).count == 1


def test_a_small_segment_waits_while_another_is_unacknowledged() -> None:
    """RFC 9293, 3.7.4, as Minshall's variant has it."""
    talk = (
        HELLO
        + """
        20000 a > A 0:1000 ack 0
        20000 a > PA 1000:1100 ack 0
        {} a < A ack {}
        31000 a > PA 1100:{} ack 0
        41000 a < A ack 2100
        """
    )
    on = {"nodelay": False}
    assert found("nagle", talk.format(30000, 1100, 1200), options=on).count == 0
    assert found("nagle", talk.format(30000, 1000, 2100), options=on).count == 0
    assert found("nagle", talk.format(30000, 1000, 1200), options=on).count == 1
    assert found("nagle", talk.format(30000, 1000, 1200), options={"nodelay": True}).count == 0
    assert found("nagle", talk.format(30000, 1000, 1200)).undecided


def test_nagle_lets_a_loss_probe_pass_and_what_has_data_behind_it() -> None:
    talk = (
        HELLO
        + """
        20000 a > A 0:1000 ack 0
        20000 a > PA 1000:1100 ack 0
        30000 a < A ack 1000
        {} a > PA 1100:1200 ack 0
        {}
        100000 a < A ack 1200
        """
    )
    on = {"nodelay": False}
    assert found("nagle", talk.format(45000, ""), options=on).count == 1
    assert found("nagle", talk.format(55000, ""), options=on).count == 0
    assert found("nagle", talk.format(45000, "46000 a > A 1200:2200 ack 0"), options=on).count == 0


def test_nagle_lets_a_loss_probe_pass_by_the_rtt_that_was_known() -> None:
    """Two of the SYN's, however long later ones are."""
    talk = HELLO + "20000 a > PA 0:100 ack 0\n{} a > PA 100:200 ack 0\n100000 a < A ack 200\n"
    talk += "100000 a > A 200:1200 ack 0\n"
    on = {"nodelay": False}
    assert found("nagle", talk.format(39000), options=on).count == 1
    assert found("nagle", talk.format(41000), options=on).count == 0


def test_nagle_knows_no_size_of_segments_where_the_path_mtu_falls() -> None:
    talk = HELLO + "20000 a > A 0:1000 ack 0\n"
    icmp = {"a": {"snmp": {"Icmp.InDestUnreachs": 1}}}
    assert "path MTU" in found("nagle", talk, options={"nodelay": False}, counters=icmp).undecided


def test_nagle_lets_new_data_pass_that_asks_whether_a_timeout_was_spurious() -> None:
    """RFC 5682, 2.1, step 2b."""
    talk = (
        HELLO
        + """
        20000 a > A 0:1000 ack 0
        20000 a > PA 1000:1100 ack 0
        {}
        260000 a < A ack 1000
        260000 a > PA 1100:1200 ack 0
        265000 a < A ack 1200
        """
    )
    assert found("nagle", talk.format("250000 a > A 0:1000 ack 0"), options={"nodelay": False}).count == 0
    assert found("nagle", talk.format("250000 a < A ack 0"), options={"nodelay": False}).count == 1


def test_nagle_does_not_know_what_the_window_holds_back() -> None:
    talk = """
        20000 a > A 0:1000 ack 0
        20000 a > PA 1000:1100 ack 0
        25000 a > PA 1100:1200 ack 0
        40000 a < A ack 1200 win 64000
    """
    for window, count in (("1200", 0), ("2200", 1)):
        hello = HELLO.replace("64000", window)
        assert found("nagle", hello + talk, options={"nodelay": False}).count == count


def test_the_reopening_of_the_window_is_reported() -> None:
    """RFC 9293, 3.8.6.1."""
    talk = (
        HELLO_B
        + """
        20000 b < A 0:1000 ack 0
        20000 b > A ack 1000 win 0
        300000 b < A 999:999 ack 0
        {} b > A ack 1000 win 60000
        """
    )
    assert found("window-reopened", talk.format(450000), host="b").count == 0
    assert found("window-reopened", talk.format(300000), host="b").count == 1
    assert found("window-reopened", talk.format(300000).replace("1000 win 60000", "1000 win 0"), host="b").count == 0
