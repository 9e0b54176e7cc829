# SPDX-License-Identifier: Apache-2.0
"""What a receiver does under settings that few plans have, and where each rule begins again to speak."""

from __future__ import annotations

import pytest
from testctl.core.point import TimedFlow

from controller.tests.rules.conversation import HELLO, HELLO_B, found
from controller.tests.rules.traced import burst, sample, violations


@pytest.mark.parametrize(("least_us", "ato", "count"), [(5000, 4, 0), (5000, 3, 1), (5000, 5, 1), (200_000, 39, 1)])
def test_a_delayed_ack_waits_a_tick_less_than_the_least_rto(least_us: int, ato: int, count: int) -> None:
    """tcp_delack_max()."""
    settings = {"a": {"kernel": "6.12", "net.ipv4.tcp_rto_min_us": least_us}}
    taken = sample(time_ns=90_000_000, state=1, ato=1000 * ato, rto=210_000)
    text = HELLO + "20000 a < PA 0:1000 ack 0\n"
    assert found("delayed-ack-time", text, settings=settings, samples=taken).count == count


@pytest.mark.parametrize(("mss", "count"), [(900, 0), (899, 0), (901, 1), (666, 1)])
def test_the_last_of_several_merged_segments_may_be_short(mss: int, count: int) -> None:
    """2000 bytes are 667 to 999 bytes three times, or 900 twice and 200."""
    taken = sample(time_ns=90_000_000, state=1, rcv_mss=mss, advmss=900)
    assert found("received-mss", HELLO + "20000 a < A 0:2000 ack 0 segs 3\n", samples=taken).count == count


def test_data_for_which_a_smaller_buffer_has_no_space_is_taken_where_nothing_waits() -> None:
    """tcp_data_queue(): with a window of zero, though all is acknowledged."""
    talk = HELLO_B + "20000 b < A 0:1000 ack 0\n20000 b > A ack 1000 win 0\n30000 b > A ack 1000 win 20000\n"
    assert found("window-moves-back", talk, host="b").count == 2
    assert found("window-moves-back", talk, host="b", options={"receive_buffer_later": "4kB at 15ms"}).count == 0


def test_nothing_is_reserved_without_tcp_app_win() -> None:
    taken = sample(time_ns=15_000_000, state=1, rcv_ssthresh=65_340, advmss=1000)
    for value, undecided in ((0, True), (31, False)):
        settings = {"a": {"net.ipv4.tcp_app_win": value}}
        assert (
            bool(found("receive-reserve", HELLO + burst(10000, 0, 9), samples=taken, settings=settings).undecided)
            is undecided
        )


def test_each_of_two_packets_of_an_instant_may_be_answered_one_of_them_later() -> None:
    """A compressed SACK; no ACK opens the window, which would answer nothing."""
    talk = HELLO_B + "19000 b > A ack 0 win 67000\n20000 b < A 1000:2000 ack 0\n20000 b < A 3000:4000 ack 0\n"
    talk += "20000 b > A ack 0 win 67000 sack 1000:2000\n20150 b > A ack 0 win 67000 sack 3000:4000,1000:2000\n"
    assert found("acks-per-segment", talk + "900000 b < A\n", host="b").count == 0
    more = "20300 b > A ack 0 win 67000 sack 3000:4000,1000:2000\n900000 b < A\n"
    assert found("acks-per-segment", talk + more, host="b").count == 1


def test_a_window_that_stays_is_rounded_up() -> None:
    """tcp_select_window(): by less than the 128 bytes that all windows are multiples of."""
    talk = HELLO_B + "20000 b < A 0:1000 ack 0\n20000 b > A ack 1000 win 5120\n30000 b < A 1000:64000 ack 0 segs 63\n"
    talk += "30000 b > A ack 64000 win 1024\n31000 b < A 64000:64400 ack 0\n31000 b > A ack 64400 win {}\n"
    assert found("silly-window-offered", talk.format(640), host="b").count == 0
    assert found("silly-window-offered", talk.format(896), host="b").count == 1
    later = {"receive_buffer_later": "4kB at 300ms"}
    assert found("silly-window-offered", talk.format(896), host="b", options=later).undecided


@pytest.mark.parametrize(("window", "time", "count"), [(50000, 21, 0), (50000, 22, 1), (50001, 21, 1)])
def test_an_ack_waits_for_an_application_whose_turn_has_not_come(window: int, time: int, count: int) -> None:
    """__tcp_ack_snd_check(): where the window would shrink; a millisecond is no delayed ACK."""
    talk = HELLO_B + "20000 b < A 0:1000 ack 0\n20000 b > A ack 1000 win 50000\n20000 b < A 1000:3000 ack 0 segs 2\n"
    talk += f"{time}000 b > A ack 3000 win {window}\n900000 b < A\n"
    assert found("ack-every-second-segment", talk, host="b").count == count


@pytest.mark.parametrize(("above", "count"), [("A 2000:2000", 0), ("A 2000:2001", 1)])
def test_an_ack_ahead_of_lost_data_leaves_no_gap(above: str, count: int) -> None:
    """tcp_data_queue(): it has nothing to queue."""
    text = HELLO + f"10000 a < {above} ack 0\n20000 a < PA 0:1000 ack 0\n24000 a > A ack 1000\n"
    assert violations("ack-filled-gap", text) == count


@pytest.mark.parametrize(("ack", "count"), [(0, 0), (1000, 1)])
def test_data_that_a_window_of_zero_refuses_is_not_received(ack: int, count: int) -> None:
    """TCPZeroWindowDrop, with tcp_shrink_window; the window was open when it was sent."""
    text = HELLO + f"20000 a < A 0:1000 ack 0\n20000 a > A ack {ack} win 0\n"
    taken = {"time_ns": 90_000_000, "state": 1, "segs_out": 3, "segs_in": 2, "data_segs_in": 1, "bytes_acked": 1}
    assert found("info-counts", text, samples=sample(**taken, bytes_received=0, rcv_ooopack=0)).count == count


@pytest.mark.parametrize(("start", "count"), [(2000, 1), (2001, 0)])
def test_data_beyond_a_window_that_was_taken_back_is_dropped(start: int, count: int) -> None:
    """tcp_sequence(), with tcp_shrink_window; the ACK that answers it has no SACK block."""
    text = HELLO + "20000 a < A 0:1000 ack 0\n20000 a > A ack 1000 win 1000\n"
    text += f"30000 a < A {start}:4000 ack 0\n31000 a > A ack 1000 win 1000\n"
    text += "60000 a > A ack 1000 sack 9000:9001\n"
    assert violations("sack-present", text) == count
    taken = {"time_ns": 90_000_000, "state": 1, "segs_out": 5, "segs_in": 3, "data_segs_in": 2, "bytes_acked": 1}
    assert found("info-counts", text, samples=sample(**taken, bytes_received=1000, rcv_ooopack=0)).count == count


@pytest.mark.parametrize(("host", "name", "count"), [("b", "segs_in", 0), ("b", "segs_out", 1), ("-", "segs_in", 1)])
def test_how_many_segments_came_is_not_known_where_the_peer_heard_of_a_smaller_mtu(
    host: str, name: str, count: int
) -> None:
    """GRO merges what it sends then, and a capture shows the segments of the MSS that the connection began with."""
    text = HELLO + "20000 a < A 0:1200 ack 0\n20000 a > A ack 1200\n"
    taken = {"time_ns": 90_000_000, "state": 1, "segs_out": 3, "segs_in": 2, "data_segs_in": 1, "bytes_acked": 1}
    more = sample(**taken | {name: taken[name] + 1}, bytes_received=1200, rcv_ooopack=0)
    counters = {host: {"snmp": {"Icmp.InDestUnreachs": 1}}}
    assert found("info-counts", text, samples=more, counters=counters).count == count


@pytest.mark.parametrize(("ack", "undecided"), [(20000, False), (40000, True)])
def test_a_rule_that_packets_in_the_backlog_break_is_undecided(ack: int, undecided: bool) -> None:
    """tcp_add_backlog(): TCP takes them later, several as one."""
    text = HELLO + "20000 a < A 0:1000 ack 0\n20000 a < A 1000:2000 ack 0\n" + f"{ack} a > A ack 2000\n"
    result = found("ack-every-second-segment", text, counters={"a": {"snmp": {"TcpExt.TCPBacklogCoalesce": 1}}})
    assert (bool(result.undecided), result.count) == (undecided, 0)
    assert found("ack-every-second-segment", text).count == undecided


@pytest.mark.parametrize(
    ("end", "generator", "undecided"), [("a", "iperf3", True), ("b", "iperf3", False), ("a", "tgen", False)]
)
def test_an_application_reads_late_where_iperf3_has_the_processor(end: str, generator: str, undecided: bool) -> None:
    """It spins on the clock, which moves virtual time."""
    text = HELLO + "20000 a < A 0:1000 ack 0\n20000 a < A 1000:2000 ack 0\n40000 a > A ack 2000\n"
    other = TimedFlow("g", "c", end, generator)
    result = found("ack-every-second-segment", text, others=(other,))
    assert (result.undecided != "", result.count) == (undecided, not undecided)


@pytest.mark.parametrize(("generator", "ms", "count"), [("iperf3", 30, 1), ("iperf3", 15, 0), ("tgen", 15, 1)])
def test_iperf3_reads_late_when_its_time_is_over(generator: str, ms: int, count: int) -> None:
    """It has its results to write."""
    text = HELLO + "20000 a < A 0:1000 ack 0\n20000 a < A 1000:2000 ack 0\n40000 a > A ack 2000\n"
    result = found("ack-every-second-segment", text, generator=generator, duration_ns=ms * 1_000_000)
    assert (result.undecided, result.count) == ("", count)


@pytest.mark.parametrize(("old", "count"), [("1000:2000", 0), ("5000:6000", 1)])
def test_the_ack_of_an_old_duplicate_repeats_the_last_block(old: str, count: int) -> None:
    """tcp_send_dupack(), without D-SACK: the block is of what came before."""
    text = HELLO + "20000 a < A 0:3000 ack 0\n20000 a > A ack 3000\n21000 a < A 4000:5000 ack 0\n"
    text += f"21000 a > A ack 3000 sack 4000:5000\n30000 a < A {old} ack 0\n30000 a < A 9000:9999 ack 0\n"
    text += "30000 a > A ack 3000 sack 4000:5000\n"
    assert violations("sack-first-block", text) == count


@pytest.mark.parametrize(("acks", "count"), [("", 0), ("20000 a > A ack 0 sack 5000:6000,3000:4000,1000:2000\n", 1)])
def test_a_compressed_ack_may_go_at_the_instant_of_the_next_segment(acks: str, count: int) -> None:
    """Its timer and GRO's both take 1 ms: the first ACK of an instant may be of the last segment of a batch before."""
    text = HELLO + "20000 a < A 1000:2000 ack 0\n20000 a < A 3000:4000 ack 0\n20000 a < A 5000:6000 ack 0\n"
    text += f"20000 a > A ack 0 sack 1000:2000\n20000 a > A ack 0 sack 3000:4000,1000:2000\n{acks}"
    text += "21000 a < A 7000:8000 ack 0\n21000 a > A ack 0 sack 5000:6000,3000:4000,1000:2000\n"
    text += "21000 a > A ack 0 sack 7000:8000,5000:6000,3000:4000,1000:2000\n"
    assert violations("sack-first-block", text) == count


def test_what_came_in_order_before_is_no_compressed_ack() -> None:
    text = HELLO + "19000 a < A 7000:8000 ack 0\n19000 a > A ack 0 sack 7000:8000\n20000 a < A 0:1000 ack 0\n"
    text += "20000 a < A 1000:2000 ack 0\n20000 a > A ack 2000 sack 7000:8000\n21000 a < A 4000:5000 ack 0\n"
    assert violations("sack-first-block", text + "21000 a > A ack 2000 sack 7000:8000,4000:5000\n") == 1


def test_a_host_may_take_more_than_it_had_offered() -> None:
    """Its ACK tells."""
    text = HELLO + "20000 a < A 0:1000 ack 0\n20000 a > A ack 1000 win 1000\n"
    text += "30000 a < A 1000:3000 ack 0\n30000 a < A 3000:4000 ack 0\n"
    assert violations("ack-of-unsent", text + "30500 a > A ack 4000 win 1000\n") == 0
    assert violations("ack-of-unsent", text + "30500 a > A ack 4001 win 1000\n") == 1


@pytest.mark.parametrize(
    ("kernel", "scale", "bytes_", "count"),
    [("6.1", 2, 97_304, 0), ("6.1", 2, 97_305, 1), ("6.1", -2, 31_769, 1), ("6.12", 2, 64_537, 1)],
)
def test_what_part_of_the_buffer_counts_was_a_sysctl_before(kernel: str, scale: int, bytes_: int, count: int) -> None:
    """tcp_win_from_space(), until dfa2f0483360 (6.6)."""
    settings = {"a": {"kernel": kernel, "net.ipv4.tcp_adv_win_scale": scale}}
    taken = sample(time_ns=90_000_000, state=1, rcv_ssthresh=bytes_, advmss=1000)
    assert found("receive-reserve", HELLO, settings=settings, samples=taken).count == count
