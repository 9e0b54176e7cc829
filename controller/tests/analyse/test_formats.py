# SPDX-License-Identifier: Apache-2.0
"""The same conversation gives the same records in every format, of every link type, cut, merged and compressed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.analyse import scan

from controller.tests.analyse import written as w
from controller.tests.analyse.made import records_of
from controller.tests.analyse.written import Segment

FORMATS: dict[str, Callable[[Sequence[Segment]], bytes]] = {
    **{link: lambda s, link=link: w.pcap(s, link) for link in w.LINKS},
    **{f"ng {link}": lambda s, link=link: w.pcapng(s, link) for link in w.LINKS},
    "big": lambda s: w.pcap(s, order=">"),
    "ng big": lambda s: w.pcapng(s, order=">"),
    "cut behind the TCP header": lambda s: w.pcap(s, snap=14 + 20 + 28),
    "ng several interfaces and sections": w.several_interfaces,
    "gzip": lambda s: w.gzipped(w.pcap(s)),
    "zstd": lambda s: w.zstd(w.pcapng(s)),
    "µs": lambda s: w.pcap(s, nano=False),
    "kuznetzov": lambda s: w.pcap(s, kuznetzov=True),
}


def rows(work: Path, file: Path) -> list[dict[str, object]]:
    return list(records_of(work, file, at="client")[0].packets.to_pylist())


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_gives_the_records_of_plain_pcap(tmp_path: Path, name: str) -> None:
    segments = w.conversation(reply=3)
    want = rows(tmp_path / "a", w.write(tmp_path / "plain", w.pcap(segments)))
    got = rows(tmp_path / "b", w.write(tmp_path / "other", FORMATS[name](segments)))
    assert len(want) == len(segments)
    assert got == want


@pytest.mark.parametrize("link", ["ethernet", "cooked", "cooked2", "raw", "pppoe"])
def test_ipv6_with_extension_headers_gives_the_records_of_ipv6_without(tmp_path: Path, link: str) -> None:
    routing = bytes([60, 1, 0, 0]) + bytes(12)
    extensions = bytes([43, 0]) + bytes(6) + routing + bytes([6, 0]) + bytes(6)
    segments = w.conversation()
    want = rows(tmp_path / "a", w.write(tmp_path / "plain", w.pcap(w.over_ipv6(segments), link)))
    got = rows(tmp_path / "b", w.write(tmp_path / "other", w.pcap(w.over_ipv6(segments, extensions), link)))
    assert len(want) == len(segments)
    assert got == want


def test_a_frame_above_64_kib_whose_ip_header_says_0_has_the_length_of_the_frame(tmp_path: Path) -> None:
    first, *rest = w.conversation(data=1)[3:]
    large = replace(first, length=70_000, total=0)
    segments = [*w.conversation(data=1)[:3], large, replace(rest[0], ack=71_000)]
    packets = records_of(tmp_path / "a", w.write(tmp_path / "c", w.pcap(segments)), at="client")[0].packets
    assert packets["length"].to_pylist()[3] == 70_000
    assert packets["segs"].to_pylist()[3] == -(-70_000 // 1460)


def test_fragments_are_left_out_and_counted(tmp_path: Path) -> None:
    segments = w.conversation()
    segments[5] = replace(segments[5], fragment=0x2000)
    scanned = scan(w.write(tmp_path / "c", w.pcap(segments)))
    assert scanned.tcp == len(segments) - 1
    assert scanned.notes == ("1 fragments of IP packets are left out",)


def test_packets_back_in_time_are_sorted_and_counted(tmp_path: Path) -> None:
    segments = w.conversation()
    want = rows(tmp_path / "a", w.write(tmp_path / "plain", w.pcap(segments)))
    segments[7], segments[8] = segments[8], segments[7]
    file = w.write(tmp_path / "other", w.pcap(segments))
    records, _, _ = records_of(tmp_path / "b", file, at="client")
    assert records.packets.to_pylist() == want
    assert "1 packets are earlier than the packet before them in the file, by up to 20 ms: sorted by time" in str(
        records.notes
    )


def test_a_packet_without_time_gets_that_of_the_packet_before(tmp_path: Path) -> None:
    segments = w.conversation()
    head = w.LINKS["ethernet"][1]
    frame = head(segments[3]) + segments[3].packet()
    simple = w.block("<", 3, len(frame).to_bytes(4, "little") + frame)
    data = w.pcapng(segments[:3]) + simple + w.pcapng(segments[4:])
    scanned = scan(w.write(tmp_path / "c", data))
    assert scanned.frames == len(segments)
    assert "1 packets have no time" in scanned.notes[0]


def test_each_packet_twice_is_the_capture_with_each_once(tmp_path: Path) -> None:
    segments = w.conversation()
    want = rows(tmp_path / "a", w.write(tmp_path / "plain", w.pcap(segments)))
    twice = [copy for s in segments for copy in (s, replace(s, time_ns=s.time_ns + 5_000, ttl=63))]
    file = w.write(tmp_path / "other", w.pcap(twice))
    assert rows(tmp_path / "b", file) == want
    assert scan(file).connections["again"].sum() == 0
    assert f"{len(segments)} packets are twice in the file: their copies are left out" in scan(file).notes


def test_a_packet_that_left_again_at_once_is_no_copy(tmp_path: Path) -> None:
    segments = w.conversation()
    again = replace(segments[3], time_ns=segments[3].time_ns + 5_000, number=999)
    file = w.write(tmp_path / "c", w.pcap([*segments[:4], again, *segments[4:]]))
    assert len(rows(tmp_path / "a", file)) == len(segments) + 1
    assert scan(file).connections["again"].sum() == 1


def test_the_same_ports_again_are_another_connection(tmp_path: Path) -> None:
    later = [replace(s, time_ns=s.time_ns + 10**10, seq=s.seq + 10**6 * s.up, ack=s.ack + 10**6 * (not s.up))
             for s in w.conversation()]  # fmt: skip
    records, chosen, _ = records_of(
        tmp_path / "a", w.write(tmp_path / "c", w.pcap([*w.conversation(), *later])), at="client"
    )
    assert [flow.name for flow in chosen.flows] == ["10.0.0.1:40000-10.0.0.2:80", "10.0.0.1:40000-10.0.0.2:80#2"]
    assert records.packets["retrans"].to_pylist().count(True) == 0


@pytest.mark.parametrize("up", [True, False])
def test_so_they_are_where_one_direction_was_captured_and_the_first_began_before(tmp_path: Path, up: bool) -> None:
    first = [segment for segment in w.conversation() if segment.up is up]
    again = [replace(s, time_ns=s.time_ns + 10**9, seq=s.seq + 10**6, ack=s.ack + 10**6) for s in first]
    scanned = scan(w.write(tmp_path / "c", w.pcap([*first[1:], *again])))
    assert len(scanned.connections) == (2 if up else 1), "a SYN begins one, a SYN-ACK does not"


def test_more_connections_than_flows_are_grouped_by_their_server(tmp_path: Path) -> None:
    segments = [
        replace(s, ports=(10_000 + number, 80), time_ns=s.time_ns + number)
        for number in range(150)
        for s in w.conversation(data=1)
    ]
    records, chosen, _ = records_of(tmp_path / "a", w.write(tmp_path / "c", w.pcap(segments)), at="client")
    assert len(chosen.flows) == 101
    assert (chosen.flows[-1].name, len(chosen.flows[-1].members)) == ("10.0.0.1-10.0.0.2:80", 50)
    assert records.packets.num_rows == len(segments)
