# SPDX-License-Identifier: Apache-2.0
"""The messages to the kernel byte by byte, and recorded replies of Linux 6.12."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.network import netlink, qdisc
from testctl_agent.params.host.htb import DEFAULT_BUFFER, Htb, class_options, default_burst

BURST_NOTE = 1 << 30


@pytest.mark.parametrize(
    ("options", "frozen"),
    [
        (qdisc.htb_options(), "18000200030000000a000000010000000000000000000000"),
        (
            qdisc.htb_class_options(2 * 10**9, 1875, BURST_NOTE + 30_000),
            "30000100000100000000000080b2e60e000100000000000080b2e60e5307000053070000307500400000000000000000",
        ),
        (
            qdisc.htb_class_options(10**11, 157, BURST_NOTE),
            "300001000001000000000000ffffffff0001000000000000ffffffff9d0000009d000000000000400000000000000000"
            "0c00060000dd0ee9020000000c00070000dd0ee902000000",
        ),
        (qdisc.bfifo_options(10**6), "40420f00"),
        (
            qdisc.red_options(10**6, 30_000),
            "1400010040420f00307500003075000000000000"
            "04010200" + "1f" * 256 + "08000300ffffffff0c000400090000000f000000",
        ),
        (
            qdisc.netem_options(10**10, 123_457, 77, 1_514_000),
            "890700004d0000000000000000000000000000000000000010000100101a1700000000000000000014000600807c814a"
            "0000000000000000000000000c000a0041e2010000000000",
        ),
        (
            qdisc.netem_options(4 * 10**10, 5 * 10**9, 77, 0),
            "c817a8044d000000000000000000000000000000000000001000010000000000000000000000000014000600ffffffff"
            "0000000000000000000000000c00080000f2052a010000000c000a0000f2052a01000000",
        ),
    ],
    ids=["htb", "class 2gbit", "class 100gbit", "bfifo", "red", "netem 10gbit", "netem 40gbit"],
)
def test_options(options: bytes, frozen: str) -> None:
    assert options.hex() == frozen


def test_answers_of_the_kernel() -> None:
    htb = "30000100000100000000000080b2e60e000100000000000080b2e60e5307000053070000307500400000000000000000"
    assert qdisc.parse_htb_class(bytes.fromhex(htb)) == (2 * 10**9, 1875, BURST_NOTE + 30_000)
    fast = (
        "300001000001000000000000ffffffff0001000000000000ffffffff26000000260000003075004000000000000000000400"
        "08000c00060000dd0ee902000000040008000c00070000dd0ee902000000"
    )
    assert qdisc.parse_htb_class(bytes.fromhex(fast)) == (10**11, 38, BURST_NOTE + 30_000)
    red = "1400010040420f0030750000307500000000000108000300ffffffff0c000400090000000f000000"
    assert qdisc.parse_red(bytes.fromhex(red)) == (10**6, 30_000)
    netem = (
        "890700004d000000000000000000000000000000000000000c000a0041e20100000000000c000b000000000000000000100001"
        "00101a170000000000000000000c00030000000000000000000c000400000000000000000014000600807c814a000000000000"
        "000000000000040009000c000e00b43694a82189fd88"
    )
    assert qdisc.parse_netem(bytes.fromhex(netem)) == (10**10, 123_457, 77, 1_514_000)


@given(
    st.integers(1, 10**12).map(lambda n: n * 8),
    st.integers(0, 10**12),
    st.integers(1, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)
def test_netem_reads_back_what_was_said(rate: int, delay: int, limit: int, note: int) -> None:
    assert qdisc.parse_netem(qdisc.netem_options(rate, delay, limit, note)) == (rate, delay, limit, note)


@given(st.integers(1, 2**40).map(lambda n: n * 8), st.integers(1, 2**30 - 1))
def test_a_bucket_is_rounded_up_by_less_than_a_tick(rate: int, burst: int) -> None:
    ticks = qdisc.bucket_ticks(burst, rate)
    assert (ticks - 1) * qdisc.TICK_NS * rate < burst * 8 * 10**9 <= ticks * qdisc.TICK_NS * rate


def test_a_red_that_is_no_threshold_is_refused() -> None:
    options = bytearray(qdisc.red_options(10**6, 30_000))
    struct.pack_into("=I", options, 8, 10_000)
    with pytest.raises(ValueError, match="a RED with min 10000, max 30000, Wlog 0, flags 9"):
        qdisc.parse_red(bytes(options))


@pytest.mark.parametrize("rate", [1, 12, 10**9 + 1])
def test_a_rate_has_to_be_whole_bytes(rate: int) -> None:
    with pytest.raises(ValueError, match=f"whole bytes a second; got {rate} bit/s"):
        qdisc.bytes_per_second(rate)


def test_attributes_are_padded_and_found_again() -> None:
    data = netlink.text(1, "red") + netlink.attr(2 | 0x8000, b"abcde") + netlink.u64(3, 7)
    assert data.hex() == "08000100726564000900028061626364650000000c0003000700000000000000"
    assert netlink.parse(data) == {1: b"red\0", 2: b"abcde", 3: b"\7" + bytes(7)}
    assert netlink.parse(b"\2\0\1\0") == {}


def test_an_error_carries_the_words_of_the_kernel() -> None:
    header = struct.pack("=IHHII", 36, 36, 0, 1, 0)
    body = struct.pack("=i", -2) + header + netlink.text(1, "Specified qdisc kind is unknown")
    with pytest.raises(netlink.NetlinkError, match="No such file or directory: Specified qdisc kind is unknown") as e:
        netlink._refuse(2, 0x200, body)
    assert e.value.errno == 2
    netlink._refuse(2, 0, struct.pack("=i", 0) + header)


def test_handles_read_as_in_tc() -> None:
    assert [qdisc.handle_text(h) for h in (0x10000, 0xFFFFFFF1, 0x10001, 0)] == ["1:", "ffff:fff1", "1:1", "0:"]


def test_the_limiter_keeps_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [default_burst(rate) for rate in (10**6, 2 * 10**9, 10**10)] == [1600, 2500, 12_500]
    rate, ticks, quantum = qdisc.parse_htb_class(class_options(Htb(rate=10**10, burst=65_536)))
    assert (rate, ticks, quantum - BURST_NOTE) == (10**10, 820, 65_536)
    assert qdisc.parse_htb_class(class_options(Htb(rate=2 * 10**9)))[2] == BURST_NOTE
    with pytest.raises(ValueError, match="a bucket of 1000000 bytes takes 1000 s to fill"):
        class_options(Htb(rate=8000, burst=10**6))
    assert Htb(rate=8).form == ("bfifo", False)
    marking = Htb(rate=8, buffer=DEFAULT_BUFFER, ecn_threshold=5)
    for lacking, kind in (("", "red"), ("this kernel has no red qdisc", "data")):
        monkeypatch.setattr(qdisc, "unavailable", {"red": lacking}.__getitem__)
        assert marking.form == (kind, True)
    assert Htb(rate=8, ecn_threshold=5, mark="ack").form == ("ack", False)


def test_packets_are_counted_beyond_32_bits() -> None:
    """The first count wraps; the attribute TCA_STATS_PKT64 does not."""
    basic, packets = struct.pack("=QI", 10**13, 5), struct.pack("=Q", 2**32 + 5)
    for attributes, count in (
        (netlink.attr(1, basic), 5),
        (netlink.attr(1, basic) + netlink.attr(8, packets), 2**32 + 5),
    ):
        stats, _ = qdisc._stats({qdisc._TCA_STATS2: attributes}, "htb")
        assert (stats["bytes"], stats["packets"]) == (10**13, count)
