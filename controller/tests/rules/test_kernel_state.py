# SPDX-License-Identifier: Apache-2.0
"""What a kernel says of a connection's state, its counters and its timing, next to what its packets say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from testctl.core.outcome import Outcome
from testctl.core.point import TimedFlow
from testctl.records.schema import TCP_EVENT_NAMES, TCP_LIMITS
from testctl.rules import rttvar_follows
from testctl.rules.core.registry import rules
from testctl.rules.core.spec import Found
from testctl.rules.core.trace import trace_of

from controller.tests.rules.conversation import HELLO, found, records
from controller.tests.rules.traced import FIRST, burst, events, sample

FLIGHT = HELLO + burst(10000, 0, 9)
ACKED = FLIGHT + "20000 a < A ack 1000\n"
NINE = "10000 send open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 0 delivered 1\n"
FIRST_ACK = "20000 ack open una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 8 prior 9 delivered 2\n"
ACCEPTS = "0 a < S win 64000\n0 a > SA ack 0 win 64000\n10000 a < A ack 0\n" + burst(10000, 0, 9)
LATE = 900_000_000
NOTHING, BUFFER, RECEIVER, CWND, PACE = (
    TCP_LIMITS.index(name) for name in ("nothing", "send_buffer", "receiver_window", "cwnd", "pacing")
)


def count(rule: str, text: str, *, trace: str = "", taken: dict[str, int] | None = None, **settings: Any) -> int:
    """Violations of host a; taken: its sample of an established connection, late."""
    result = found(
        rule,
        text,
        settings={"a": {"cc": "reno", **settings}},
        events=events(trace) if trace else None,
        samples=None if taken is None else sample(**{"time_ns": LATE, "state": 1, **taken}),
    )
    assert not result.undecided
    return result.count


CLOSES = FLIGHT + "20000 a < A ack 9000\n21000 a > FA 9000:9000 ack 0\n"
THEIRS = "22000 a < FA 0:100 ack {}\n22000 a > A ack 101\n"


@pytest.mark.parametrize(
    ("packets", "right"),
    [
        (FLIGHT, (1, 4)),  # a FIN may wait behind data
        (CLOSES, (4,)),
        (CLOSES + "22000 a < A ack 9000\n", (4,)),
        (CLOSES + "22000 a < A ack 9001\n", (5, 6, 7)),
        (FLIGHT + THEIRS.format(0), (8, 9, 11)),
        (FLIGHT + THEIRS.format(0).replace("0:100", "50:100"), (1, 4)),  # a FIN above a gap
        (CLOSES + THEIRS.format(9000), (9, 11)),
        (CLOSES + THEIRS.format(9001), (6, 7)),
    ],
)
def test_the_state_of_a_connection_is_where_its_fins_lead(packets: str, right: tuple[int, ...]) -> None:
    """RFC 9293, 3.3.2."""
    last = 1000 * int(packets.splitlines()[-1].split()[0])
    for state in (1, 4, 5, 6, 7, 8, 9, 11):
        assert count("connection-state", packets, taken={"state": state}) == (state not in right)
        assert not count("connection-state", packets, taken={"state": state, "time_ns": last + 99_999}), "under way"
        assert not count("connection-state", packets + "23000 a < R\n", taken={"state": state})
    assert not count("connection-state", packets, taken={"state": 2}), "SYN-SENT"


@pytest.mark.parametrize(
    ("mss", "more", "wrong"),
    [
        (1448, {"mtu": 1500}, 0),  # less 20 for IP, and 32 for TCP with timestamps
        (1460, {"mtu": 1500}, 1),
        (1447, {"mtu": 1500}, 1),
        (8948, {"mtu": 9000}, 0),
        (1460, {}, 0),
    ],
)
def test_a_host_counts_on_segments_that_fill_its_mtu(mss: int, more: dict[str, Any], wrong: int) -> None:
    """RFC 6691, 2."""
    assert count("advertised-mss", FLIGHT, taken={"advmss": mss}, **more) == wrong
    assert not count("advertised-mss", FLIGHT, taken={"advmss": mss, "time_ns": 5_000_000}, **more), "behind the SYN"
    for option in ("sack 1000:2000", "accecn_ce 0"):
        longer = HELLO.replace("> A ack 0", f"> A ack 0 {option}")
        assert not count("advertised-mss", longer, taken={"advmss": mss}, **more)


@pytest.mark.parametrize(("rttvar", "wrong"), [(3750, 0), (3750 + 74, 0), (3750 + 75, 1), (3750 - 75, 1)])
def test_rttvar_moves_by_a_quarter(rttvar: int, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 6298, 2.3: 5 ms by the SYN, then the same RTT again."""
    assert count("rttvar-follows", ACKED, taken={"rttvar": rttvar}) == wrong
    others = (
        FLIGHT + "20000 a < A ack 1000 sack 2000:3000\n",
        FLIGHT + "15000 a > A 8000:9000 ack 0\n20000 a < A ack 1000\n",
        ACCEPTS + "20000 a < A ack 1000\n",
        ACKED.replace("a > S win", "a > S win 64000\n1000 a > S win", 1),
    )
    for text in others:
        assert not count("rttvar-follows", text, taken={"rttvar": rttvar})
    assert not count("rttvar-follows", ACKED, taken={"rttvar": rttvar, "time_ns": 20_099_999})
    monkeypatch.setattr(rttvar_follows, "_MOST", 1)
    assert not count("rttvar-follows", ACKED, taken={"rttvar": rttvar})


@pytest.mark.parametrize(("rttvar", "wrong"), [(3882, 0), (4812, 1), (3750, 1)])
def test_where_the_rtt_falls_rttvar_moves_by_less(rttvar: int, wrong: int) -> None:
    """tcp_rtt_estimator(): 10 ms twice, then 2 ms."""
    text = ACKED + "21000 a > A 9000:10000 ack 0\n23000 a < A ack 10000\n"
    only = text.replace("21000 a > A 9000", "18000 a < A ack 8000\n21000 a > A 9000")  # 8 ms: within RTTVAR
    assert count("rttvar-follows", text.replace("ack 10000", "ack 9000"), taken={"rttvar": 3937}) == 1
    assert count("rttvar-follows", only, taken={"rttvar": rttvar}) == 1
    sent = HELLO + burst(10000, 0, 1) + "20000 a < A ack 1000\n21000 a > A 1000:2000 ack 0\n23000 a < A ack 2000\n"
    assert count("rttvar-follows", sent, taken={"rttvar": rttvar}) == wrong


SACKED = "21000 a < A ack 1000 sack 2000:5000\n"


@pytest.mark.parametrize(
    ("delivered", "state", "wrong"), [(5, "disorder", 1), (5, "open", 1), (4, "disorder", 0), (5, "recovery", 0)]
)
def test_three_segments_above_a_gap_begin_a_recovery(delivered: int, state: str, wrong: int) -> None:
    """RFC 6675, 5."""
    rule, before = "recovery-begins", NINE + FIRST_ACK
    ack = f"21000 ack {state} una 1000 nxt 9000 cwnd 11 ssthresh 99 pipe 5 prior 8 delivered {delivered}\n"
    assert count(rule, ACKED + SACKED, trace=before + ack) == wrong
    assert not count(rule, ACKED + "21000 a < A ack 1000\n" * 3, trace=before + ack), "without SACK"
    assert not count(rule, ACKED + SACKED, trace=before + ack + ack), "in one instant"
    assert not count(rule, ACKED + "20500 a > A 1000:2000 ack 0\n" + SACKED, trace=before + ack), "it is repaired"
    four: dict[str, Any] = {"net.ipv4.tcp_reordering": 4}
    assert not count(rule, ACKED + SACKED, trace=before + ack, **four)
    timed = {"settings": {"a": {"cc": "reno", "net.ipv4.tcp_recovery": 7}}, "events": events(before + ack)}
    assert found(rule, ACKED + SACKED, **timed).undecided, "RACK's window is waited for, whatever is SACKed"
    for name in ("TCPSACKReorder", "TCPDSACKRecv"):
        seen = {"counters": {"a": {"snmp": {f"TcpExt.{name}": 1}}}, "events": events(before + ack)}
        assert found(rule, ACKED + SACKED, settings={"a": {"cc": "reno"}}, **seen).undecided
    later = ack.replace("una 1000", "una 3000").replace(f"delivered {delivered}", f"delivered {delivered + 2}")
    closes = "20600 ack open una 3000 nxt 9000 cwnd 11 ssthresh 99 pipe 6 prior 8 delivered 4\n"
    text = ACKED + "20600 a < A ack 3000\n21000 a < A ack 3000 sack 4000:7000\n"
    assert count(rule, text, trace=before + closes + later) == wrong


def test_a_recovery_begins_also_after_more_was_sent() -> None:
    text = ACKED + "20000 a > A 9000:10000 ack 0\n20500 a < A ack 2000\n21000 a < A ack 2000 sack 3000:6000\n"
    sends = "20000 send open una 1000 nxt 10000 cwnd 11 ssthresh 99 pipe 9 prior 8 delivered 2\n"
    moves = "20500 ack open una 2000 nxt 10000 cwnd 12 ssthresh 99 pipe 8 prior 9 delivered 3\n"
    ack = "21000 ack disorder una 2000 nxt 10000 cwnd 12 ssthresh 99 pipe 5 prior 8 delivered 6\n"
    assert count("recovery-begins", text, trace=NINE + FIRST_ACK + moves + ack) == 1
    assert count("recovery-begins", text, trace=NINE + FIRST_ACK + sends + moves + ack) == 1


@pytest.mark.parametrize(("sent", "acked", "wrong"), [(15000, 9000, 0), (10000, 9000, 1), (15000, 1000, 1)])
def test_rack_compares_with_the_rtt_of_what_an_ack_passes_last(sent: int, acked: int, wrong: int) -> None:
    """tcp_rack_advance() takes the RTT of what was acknowledged by number after that of what was SACKed."""
    text = HELLO + burst(10000, 0, acked // 1000) + burst(sent, acked // 1000, 13 - acked // 1000)
    text += f"20000 a < A ack 1000\n25000 a < A ack {acked} sack {acked + 1000}:{acked + 4000}\n"
    ack = f"25000 ack disorder una {acked} nxt 13000 cwnd 19 ssthresh 99 pipe 1 prior 9 delivered {4 + acked // 1000}\n"
    assert count("recovery-begins", text, trace=NINE + FIRST_ACK + ack) == wrong


LOST = "20500 a > A 1000:2000 ack 0\n21000 a < A ack 1000 sack 2000:6000\n22000 a < A ack 1000 sack 2000:7000\n"
BEGAN = "20400 ack recovery una 1000 nxt 9000 cwnd 7 ssthresh 5 pipe 4 prior 8 delivered 5\n"


@pytest.mark.parametrize(("pipe", "state", "wrong"), [(2, "recovery", 0), (3, "recovery", 1), (3, "disorder", 0)])
def test_in_a_recovery_only_what_was_sent_later_is_in_flight(pipe: int, state: str, wrong: int) -> None:
    """RFC 8985, 6.2: the segment sent again, and the last two, then the last; one ACK late is let pass."""
    text = ACKED + "20400 a < A ack 1000 sack 2000:5000\n" + LOST + "23000 a > A 9000:10000 ack 0\n"
    first = f"21000 ack {state} una 1000 nxt 9000 cwnd 7 ssthresh 5 pipe {pipe + 2} prior 5 delivered 6\n"
    ack = f"22000 ack {state} una 1000 nxt 9000 cwnd 7 ssthresh 5 pipe {pipe + 1} prior 5 delivered 7\n"
    trace = NINE + FIRST_ACK + BEGAN + first
    assert count("rack-pipe", text, trace=trace + ack) == wrong
    assert not count("rack-pipe", text, trace=trace + ack.replace(f"pipe {pipe + 1}", "pipe 3"))
    old = {"a": {"kernel": "6.12", "net.ipv4.tcp_recovery": 0}}
    assert found("rack-pipe", text, settings=old, events=events(trace + ack)).undecided
    paces = events(trace + ack.replace("\n", f" limited {PACE}\n"))
    assert found("rack-pipe", text, settings={"a": {"cc": "bbr"}}, events=paces).undecided


@pytest.mark.parametrize(
    ("time_us", "state", "limit", "wrong"),
    [(20600, "recovery", NOTHING, 1), (20400, "recovery", NOTHING, 0), (20600, "open", NOTHING, 0)]
    + [(20600, "recovery", limit, 0) for limit in (CWND, PACE)],
)
def test_a_recovery_waits_for_no_timer(time_us: int, state: str, limit: int, wrong: int) -> None:
    """RFC 8985, 6.2."""
    began = BEGAN.replace("recovery", state).replace("\n", f" limited {limit}\n")
    again = f"{time_us} retransmit {state} una 1000 nxt 9000 cwnd 7 ssthresh 5 pipe 5 prior 4 delivered 5\n"
    text = ACKED + "20400 a < A ack 1000 sack 2000:5000\n" + LOST
    trace = NINE + FIRST_ACK + began + again
    assert count("recovery-waits", text, trace=trace) == wrong
    seen = {"counters": {"a": {"snmp": {"TcpExt.TCPSACKReorder": 1}}}, "events": events(trace)}
    assert found("recovery-waits", text, settings={"a": {"cc": "reno"}}, **seen).undecided


@pytest.mark.parametrize(("bytes_", "wrong"), [(64_536, 0), (64_537, 1)])
def test_before_data_comes_a_segment_of_the_buffer_is_kept_free(bytes_: int, wrong: int) -> None:
    """tcp_init_buffer_space(): half of 131072 bytes less a segment."""
    taken = {"rcv_ssthresh": bytes_, "advmss": 1000}
    assert count("receive-reserve", FLIGHT, taken=taken) == wrong
    assert not count("receive-reserve", FLIGHT + "20000 a < A 0:100 ack 9000\n", taken=taken)
    assert not count("receive-reserve", FLIGHT + "20000 a < A 100:200 ack 9000\n", taken=taken), "above a gap"
    large: dict[str, Any] = {"net.ipv4.tcp_rmem": "4096 262144 6291456"}
    assert not count("receive-reserve", FLIGHT, taken=taken, **large)


AVOIDS = """
10000 send open una 0 nxt 10000 cwnd 10 ssthresh 5 pipe 10 prior 9 delivered 1
20000 ack open una 5000 nxt 10000 cwnd 10 ssthresh 5 pipe 5 prior 10 delivered 6
20000 send open una 5000 nxt 15000 cwnd 10 ssthresh 5 pipe 10 prior 5 delivered 6
21000 ack open una 10000 nxt 15000 cwnd 10 ssthresh 5 pipe 5 prior 10 delivered 11
"""


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("", "", 1),
        ("pipe 5 prior 10 delivered 11", "pipe 5 prior 10 delivered 11 cwnd 11", 0),
        ("pipe 5 prior 10 delivered 11", "pipe 6 prior 10 delivered 10", 0),  # less than a window
        ("pipe 5 prior 10 delivered 11", "pipe 4 prior 9 delivered 11", 0),  # the window was not full
        ("pipe 5 prior 10 delivered 6", "pipe 4 prior 9 delivered 6", 0),
        ("pipe 5 prior 10 delivered 11", "pipe 4 prior 10 delivered 11", 0),  # it takes more for gone than delivered
        ("ssthresh 5", "ssthresh 11", 0),  # slow start
        ("ssthresh 5", "ssthresh 10", 1),
        ("ssthresh 5 pipe 10 prior 5", "ssthresh 6 pipe 10 prior 5", 0),
        ("21000 ack open", "21000 ack disorder", 0),
        ("20000 ack open", "20000 ack cwr", 0),
    ],
)
def test_a_window_that_was_acknowledged_adds_a_segment(old: str, new: str, wrong: int) -> None:
    """RFC 3465, 2.1: whatever the ACKs cover."""
    trace = AVOIDS.replace(old, new)
    assert count("avoidance-growth", FIRST, trace=trace) == wrong
    assert count("avoidance-growth", FIRST, trace=trace, cc="scalable_slow") == wrong
    assert found("avoidance-growth", FIRST, settings={"a": {"cc": "cubic"}}, events=events(trace)).undecided


COUNTED = """
    0       a > S win 64000
    1000000 a > S win 64000
    1010000 a < SA ack 0 win 64000
    1010000 a > A ack 0
    1010000 a > A 0:1000 ack 0
    1010000 a > A 1000:3000 ack 0 segs 2
    1300000 a > A 1000:3000 ack 0 segs 2
    1310000 a < A ack 3000 sack 1000:3000                   # a D-SACK
    1320000 a < A 0:1000 ack 3000 ecn 2
    1360000 a > A ack 1000                                  # delayed
    1370000 a < A 1000:2000 ack 3000 ecn 3
    1370000 a > A ack 2000 win 0
    1380000 a > A ack 2000
    1390000 a < A 0:1000 ack 3000
    1390000 a > A ack 2000 sack 0:1000                      # a D-SACK
    1391000 a < A 4000:6000 ack 3000
    1391000 a > A ack 2000 sack 4000:6000
    1392000 a < A 4000:5000 ack 3000
    1392000 a > A ack 2000 sack 4000:5000,4000:6000         # a D-SACK above a gap
    1393000 a > A 3000:6000 ack 2000 segs 3
    1394000 a < A ack 3000 sack 4000:5000,4000:6000         # likewise
"""
COUNTERS = {
    "Tcp.RetransSegs": 3, "TcpExt.TCPOrigDataSent": 6, "TcpExt.TCPSynRetrans": 1, "TcpExt.DelayedACKs": 1,
    "TcpExt.TCPToZeroWindowAdv": 1, "TcpExt.TCPFromZeroWindowAdv": 1, "TcpExt.TCPDSACKOldSent": 1,
    "TcpExt.TCPDSACKOfoSent": 1, "TcpExt.TCPDSACKRecv": 1, "TcpExt.TCPDSACKOfoRecv": 1, "IpExt.InCEPkts": 1,
    "IpExt.InECT0Pkts": 1, "TcpExt.TCPTimeouts": 1,
}  # fmt: skip
TIMEOUT = """
1010000 send open una 0 nxt 3000 cwnd 10 ssthresh 99 pipe 3 prior 1 delivered 1
1300000 timeout loss una 0 nxt 3000 cwnd 1 ssthresh 2 pipe 0 prior 3 delivered 1
1394000 ack open una 3000 nxt 6000 cwnd 3 ssthresh 2 pipe 2 prior 3 delivered 6
"""


RETRANS, ABORTS = {"Tcp.RetransSegs": 4}, {"TcpExt.TCPAbortOnTimeout": 1}


def counted(changed: dict[str, int], *, trace: str = TIMEOUT, text: str = COUNTED, **more: Any) -> Found:
    """What kernel-counts finds where the kernel counts so, and otherwise what packets show."""
    more = {"counters": {"a": {"snmp": COUNTERS | changed}}, "events": events(trace) if trace else None} | more
    return found("kernel-counts", text, **more)


@pytest.mark.parametrize("name", COUNTERS)
def test_a_kernel_counts_what_packets_show(name: str) -> None:
    """RFC 4022."""
    for more in (-1, 0, 1):
        result = counted({name: COUNTERS[name] + more})
        assert not result.undecided
        assert (result.count, name in "".join(one.text for one in result.first)) == (abs(more), bool(more))


@pytest.mark.parametrize(("times", "wrong"), [(1, 0), (2, 0), (3, 1)])
def test_an_ack_that_waits_has_the_last_of_several_dsacks(times: int, wrong: int) -> None:
    """tcp_dsack_set() counts each."""
    text = COUNTED.replace("1392000 a < ", "1391900 a < A 4000:5000 ack 3000\n    1392000 a < ")
    assert counted({"TcpExt.TCPDSACKOfoSent": times}, text=text).count == wrong


def test_counters_that_packets_cannot_show_are_not_judged() -> None:
    timeouts = {"TcpExt.TCPTimeouts": 2}
    assert not counted(timeouts, trace="").count, "TCP was not traced"
    assert not counted(timeouts | ABORTS).count
    assert counted(RETRANS | ABORTS).count == 1
    again = "1500000 a > SA ack 0 win 64000\n"  # its timer counts, and is not traced
    three = {"Tcp.RetransSegs": 4, "TcpExt.TCPSynRetrans": 2, "TcpExt.TCPTimeouts": 2}
    assert not counted(three, text=COUNTED + again).count
    unknown: tuple[dict[str, Any], ...] = (
        {"counters": {}},
        {"outcome": Outcome()},
        {"options": {"read_rate": 1}},
        {"settings": {"a": {"tbf_rate": 1}}},
        {"text": COUNTED + "1400000 a > A 0:1 ack 0 conn 1\n"},
    )
    for more in unknown:
        assert counted(RETRANS, **more).undecided
    assert counted(RETRANS | {"TcpExt.OfoPruned": 1}).undecided


@pytest.mark.parametrize(("arrival", "count"), [(1359500, 0), (1320000, 1)])
def test_an_ack_sent_as_data_is_read_is_not_a_delayed_one(arrival: int, count: int) -> None:
    """tcp_cleanup_rbuf(): the timer runs for 40 ms."""
    text = COUNTED.replace("1320000 a <", f"{arrival} a <")
    assert not counted({"TcpExt.DelayedACKs": count}, text=text).count


def test_what_other_connections_of_a_host_count_is_not_the_flows() -> None:
    """The client of iperf3 has one more, by which it is controlled."""
    trace = trace_of(records(COUNTED, counters={}), "f", 0)
    arrived = int((~trace.out).sum())  # a merged packet counts once
    assert counted(RETRANS | {"Tcp.InSegs": arrived}).count == 1
    merged = COUNTED.replace("1000:2000 ack 3000 ecn 3", "1000:2000 ack 3000 ecn 3 segs 2")
    for text in (COUNTED, merged):
        assert counted(RETRANS | {"Tcp.InSegs": arrived + 1}, text=text).undecided


@pytest.mark.parametrize(("names", "wrong"), [("f", 1), ("fg", 1), ("gf", 0)])
def test_a_host_is_judged_once_with_its_first_flow(names: str, wrong: int) -> None:
    """The other flow has no packets."""
    made = records(COUNTED, counters={"a": {"snmp": COUNTERS | {"Tcp.RetransSegs": 9}}})
    flows = [TimedFlow(name, "a", "b", server_port=5001, client_port=40000) for name in names]
    made = replace(made, point=replace(made.point, flows=tuple(flows)))
    assert rules()["kernel-counts"].found(trace_of(made, "f", 0)).count == wrong


@pytest.mark.parametrize(("longer", "wrong"), [(0, 1), (20, 0)])
def test_marks_are_counted_apart_for_ipv6(longer: int, wrong: int) -> None:
    made = records(COUNTED, counters={"a": {"snmp": COUNTERS | {"IpExt.InCEPkts": 9}}})
    place = made.packets.schema.get_field_index("wire_bytes")
    sizes = pa.array([size + longer for size in made.packets["wire_bytes"].to_pylist()], pa.int32())
    packets = made.packets.set_column(place, "wire_bytes", sizes)
    trace = trace_of(replace(made, packets=packets, memo={}), "f", 0)
    assert rules()["kernel-counts"].found(trace).count == wrong


def test_each_segment_of_an_aggregate_that_arrives_is_counted() -> None:
    text = COUNTED.replace("1000:2000 ack 3000 ecn 3", "1000:2000 ack 3000 ecn 3 segs 2")
    assert not counted({"IpExt.InCEPkts": 2}, text=text).count


@pytest.mark.parametrize(
    ("limit", "us", "time_ns", "wrong"),
    [
        (BUFFER, 5, 20_000_000, 1),
        (BUFFER, 5, 20_000_001, 0),
        (BUFFER, 0, 20_000_000, 0),
        (CWND, 5, LATE, 1),
        (CWND, 0, LATE, 0),
    ],
)
def test_no_time_is_limited_by_a_send_buffer_that_never_was_full(limit: int, us: int, time_ns: int, wrong: int) -> None:
    """RFC 4898, 4."""
    trace, taken = NINE + FIRST_ACK.strip() + f" limited {limit}\n", {"sndbuf_limited": us, "time_ns": time_ns}
    assert count("limited-times", ACKED, trace=trace, taken=taken) == wrong
    assert not count("limited-times", ACKED, trace=trace, taken=taken | {"state": 4})


SPURIOUS = FLIGHT + "240000 a > A 0:1000 ack 0\n250000 a < A ack 1000\n250000 a > A 1000:2000 ack 0\n"
FRTO = f"""
10000 send open una 0 nxt 9000 cwnd 10 ssthresh 99 pipe 9 prior 0 delivered 1
240000 timeout loss una 0 nxt 9000 cwnd 1 ssthresh 5 pipe 0 prior 9 delivered 1
240000 retransmit loss una 0 nxt 9000 cwnd 1 ssthresh 5 pipe 1 prior 0 delivered 1
250000 ack loss una 1000 nxt 9000 cwnd 2 ssthresh 5 pipe 0 prior 1 delivered 2 limited {NOTHING}
250000 retransmit loss una 1000 nxt 9000 cwnd 2 ssthresh 5 pipe 1 prior 0 delivered 2
349999 send loss una 1000 nxt 10000 cwnd 2 ssthresh 5 pipe 2 prior 1 delivered 2
"""


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("", "", 1),
        ("349999", "350000", 0),  # ten round trips later: there was nothing new
        ("349999 send", "349999 retransmit", 0),
        ("250000 ack loss una 1000", "250000 ack loss una 9000", 0),
        ("250000 ack loss una 1000", "250000 ack loss una 0", 0),
        (f"limited {NOTHING}", f"limited {RECEIVER}", 0),
        ("250000 retransmit", "250000 send", 0),
        ("250000 retransmit", "251000 retransmit", 0),
        ("send open una 0", "send recovery una 0", 0),
        ("send open una 0", "send disorder una 0", 1),
        ("250000 ack", "245000 ack loss una 500 nxt 9000 cwnd 2 pipe 1 prior 1 delivered 1\n250000 ack", 0),
        ("240000 timeout", "240000 retransmit", 0),
    ],
)
def test_a_partial_ack_after_a_timeout_is_answered_with_new_data(old: str, new: str, wrong: int) -> None:
    """RFC 5682, 2.1."""
    trace = FRTO.replace(old, new)
    assert count("frto-new-data", SPURIOUS, trace=trace) == wrong
    assert not count("frto-new-data", ACKED, trace=trace), "no timer ran out"
    full = SPURIOUS.replace("a < A ack 1000\n", "a < A ack 1000 win 8999\n")
    assert not count("frto-new-data", full, trace=trace), "new data does not fit the window, which was taken back"
    for off in ({"net.ipv4.tcp_frto": 0}, {"net.ipv4.tcp_mtu_probing": 1}):
        assert found("frto-new-data", SPURIOUS, settings={"a": off}, events=events(trace)).undecided


PACED = f"""
10000 send open una 0 nxt 1000 cwnd 10 ssthresh 99 pipe 1 prior 0 delivered 1 limited {PACE} rate 8000000
11000 send open una 0 nxt 2000 cwnd 10 ssthresh 99 pipe 2 prior 1 delivered 1 limited {PACE} rate 8000000
12000 send open una 0 nxt 3000 cwnd 10 ssthresh 99 pipe 3 prior 2 delivered 1 limited {PACE} rate 8000000
20000 send open una 0 nxt 4000 cwnd 10 ssthresh 99 pipe 4 prior 3 delivered 1 limited {PACE} rate 8000000
"""


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("", "", 1),
        ("20000", "13002", 0),
        ("20000", "13003", 1),
        ("20000", "12498", 0),  # half of the time
        ("20000", "12497", 1),
        ("20000", "12000", 0),  # one burst
        ("20000 send", "20000 ack", 0),
        ("20000 send", "20000 retransmit", 0),
        ("20000 send", "13000 ack open una 1000 nxt 3000 cwnd 10 pipe 2 prior 3 delivered 2\n20000 send", 0),
        ("prior 2 delivered 1 limited 5", "prior 2 delivered 1 limited 4", 0),
        ("prior 2 delivered 1 limited 5 rate 8000000", "prior 2 delivered 1 limited 5", 0),
        ("20000 send open", "20000 send disorder", 0),
        ("12000 send open", "12000 send cwr", 0),
        ("11000 send open", "11000 send recovery", 0),
        ("10000 send open", "10000 send recovery", 0),
        ("12000 send", "11000 send", 0),  # a burst, whose pace is that of all
        ("cwnd 10 ssthresh 99 pipe 3", "cwnd 5 ssthresh 99 pipe 3", 1),
        ("cwnd 10 ssthresh 99 pipe 3", "cwnd 4 ssthresh 99 pipe 3", 0),  # TSO may wait for space
    ],
)
def test_new_data_leaves_at_the_pace(old: str, new: str, wrong: int) -> None:
    """tcp_update_skb_after_send(): 1000 bytes at 8 Mbit/s take 1 ms."""
    assert count("pacing", FIRST, trace=PACED.replace(old, new)) == wrong


@pytest.mark.parametrize(("probing", "size", "wrong"), [(0, 1342, 2), (2, 1342, 0), (2, 1000, 2)])
def test_a_probe_of_the_path_mtu_is_not_paced(probing: int, size: int, wrong: int) -> None:
    """tcp_write_xmit()."""
    probe, then = 3000 + size, 4000 + size
    trace = PACED.replace("20000 send open una 0 nxt 4000", f"12100 send open una 0 nxt {probe}")
    trace += f"12200 send open una 0 nxt {then} cwnd 10 pipe 5 prior 4 delivered 1 limited {PACE} rate 8000000"
    settings = {"net.ipv4.tcp_mtu_probing": probing}
    assert count("pacing", FIRST, trace=trace, **settings) == wrong


@pytest.mark.parametrize(("window", "wrong"), [(5000, 1), (4999, 0)])
def test_tso_may_wait_for_space_in_the_receive_window_too(window: int, wrong: int) -> None:
    assert count("pacing", FIRST.replace("SA ack 0 win 64000", f"SA ack 0 win {window}"), trace=PACED) == wrong


def arriving(*times_ms: int) -> str:
    return HELLO + "".join(f"{at}000 a < A {n}000:{n + 1}000 ack 0\n" for n, at in enumerate(times_ms))


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (arriving(20), 40),
        (arriving(20, 30), 40),  # half and 20
        (arriving(20, 50), 51),  # half and 30, which jiffies may make 31
        (arriving(20, 59), 59),
        (arriving(20, 60), 40),  # as long as it is: left
        (arriving(20, 50, 90), 66),
        (arriving(20).replace("0:1000", "1000:2000") + "50000 a < A 2000:3000 ack 0\n", 200),  # above a gap
        (arriving(20, 50).replace("1000:2000", "2000:3000"), 40),
        (arriving(20, 50).replace("1000:2000", "0:1000"), 40),  # again
        (arriving(20, 50, 50), 51),  # the first of an instant counts
        (arriving(*range(20, 100, 10)), 40),
        (arriving(*range(20, 110, 10)), 41),  # it no longer matters what was before
        (arriving(20) + "61000 a > A ack 1000\n", 80),  # sent by the timer, which doubles it
        (arriving(20) + "20099 a > A ack 1000\n", 40),
        (arriving(20) + "61000 a > A ack 1000\n70000 a < A 1000:2000 ack 0\n", 91),
    ],
)
def test_acks_are_delayed_no_longer_than_arrivals_are_apart(text: str, most: int) -> None:
    """tcp_event_data_recv(); TCP_DELACK_MAX: 200 ms."""
    for ato, wrong in ((most, 0), (most + 1, 1)):
        values = {"time_ns": LATE, "state": 1, "ato": 1000 * ato, "rto": 900_000}
        assert found("delayed-ack-time", text, samples=sample(**values)).count == wrong
    others: tuple[dict[str, Any], ...] = (
        {"outcome": Outcome()},
        {"settings": {"a": {"tbf_rate": 1}}},
        {"counters": {"a": {"snmp": {"TcpExt.OfoPruned": 1}}}},
    )
    for more in others:
        for ato, wrong in ((200, 0), (201, 1)):
            values = {"time_ns": LATE, "state": 1, "ato": 1000 * ato, "rto": 900_000}
            assert found("delayed-ack-time", text, samples=sample(**values), **more).count == wrong


@pytest.mark.parametrize(("sent", "wrong"), [(burst(10000, 0, 2), 0), ("", 1), (burst(10000, 0, 1), 0)])
def test_behind_a_single_burst_a_timestamp_may_be_ahead(sent: str, wrong: int) -> None:
    """Nothing shows the pace, whose next turn it is of."""
    hello = "0 a > S win 64000 ts 1000/0\n10000 a < SA ack 0 win 64000 ts 5000/1000\n10000 a > A ack 0 ts 1010/5000\n"
    sent = sent.replace("ack 0", "ack 0 ts 1010/5000")
    text = hello + sent + "14000 a > A ack 0 ts 1080/5000\n"
    assert found("timestamp-clock", text).count == wrong
    again = text.replace("14000 a >", "13000 a > A 2000:3000 ack 0 ts 1013/5000\n14000 a >")
    assert found("timestamp-clock", again if sent else text).count == 1, "two bursts show it"


@pytest.mark.parametrize(
    ("duplicates", "sack", "wrong"), [(3, "", 0), (2, "", 1), (0, "", 1), (3, " sack 5000:6000", 1)]
)
def test_a_partial_ack_without_sack_is_evidence_after_three_duplicates(duplicates: int, sack: str, wrong: int) -> None:
    """RFC 6582, 3.2: of what was sent within the recovery."""
    text = FLIGHT + "20000 a < A ack 0\n" * 3 + "20000 a > A 0:1000 ack 0\n20000 a > A 9000:10000 ack 0\n"
    text += f"21000 a < A ack 0{sack}\n" * duplicates + "30000 a < A ack 9000\n30000 a > A 9000:10000 ack 0\n"
    assert count("rtx-without-evidence", text) == wrong


@pytest.mark.parametrize("rule", rules())
def test_a_rule_takes_traces_with_hardly_anything(rule: str) -> None:
    """Without samples, with a single event, or with events of a host without packets."""
    more: dict[str, Any] = {"counters": {name: {"snmp": {"Tcp.RetransSegs": 0}} for name in "ab"}}
    for event in TCP_EVENT_NAMES:
        for text in (FIRST, "0 a < A 0:1 ack 0"):
            found(rule, text, events=events(f"10000 {event} open nxt 1000 cwnd 10 pipe 1"), **more)
    found(rule, HELLO, samples=sample(state=1, time_ns=LATE), **more)
    assert not found(rule, HELLO, host="b", **more).count
    assert not found(rule, HELLO, host="b", events=events("1 ack open", host="b"), **more).count
