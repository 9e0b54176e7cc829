# SPDX-License-Identifier: Apache-2.0
"""Which packets of a capture were sent again, were overtaken, or are in the file twice."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from testctl.analyse import Scanned, listed, scan
from testctl.analyse.run import choose
from testctl.records.errors import RecordsError

from controller.tests.analyse import written as w
from controller.tests.analyse.made import assessed, records_of
from controller.tests.analyse.written import ACK, RST, Segment

MS = 1_000_000
COUNTS = ("packets", "bytes", "data", "again", "reordered", "zero_windows", "resets", "fins", "syns", "partial")


def scanned(where: Path, segments: Sequence[Segment]) -> Scanned:
    work = where / "work"
    work.mkdir()
    return scan(w.write(where / "c.pcap", w.pcap(segments)), work)


def counts(of: Scanned) -> dict[str, list[int]]:
    return {name: of.connections[name].sum(axis=0).tolist() for name in COUNTS}


def burst(*order: tuple[int, int, int]) -> list[Segment]:
    """After a handshake of 20 ms packets of 1000 bytes: (place in the data, identification of IP, when in µs)."""
    segments = w.conversation(data=1)[:4]
    at = segments[-1]
    return segments + [
        replace(at, time_ns=at.time_ns + us * 1000, seq=at.seq + 1000 * place, number=number)
        for place, number, us in order
    ]


@pytest.mark.parametrize(
    ("order", "again", "reordered"),
    [
        ([(1, 11, 0), (3, 13, 10), (2, 12, 300), (4, 14, 400)], 0, 1),  # overtaken: an earlier number
        ([(1, 11, 0), (3, 13, 10), (2, 15, 300), (4, 16, 400)], 1, 0),  # lost before the capture, sent later
        ([(1, 11, 0), (3, 13, 10), (2, 12, 30_000), (4, 14, 30_100)], 1, 0),  # by more than a round trip
        ([(1, 11, 0), (3, 65535, 10), (2, 65534, 300)], 0, 1),
        ([(1, 11, 0), (3, 1, 10), (2, 65535, 300)], 0, 1),  # the numbers begin again
        ([(1, 0, 0), (3, 0, 10), (2, 0, 300)], 0, 1),  # without numbers: within 3 ms and a round trip
        ([(1, 0, 0), (3, 0, 10), (2, 0, 4000)], 1, 0),
        ([(1, 11, 0), (5, 15, 10), (3, 13, 20), (2, 12, 30), (4, 14, 40)], 0, 3),  # all of one gap
        ([(1, 11, 0), (2, 12, 10), (1, 13, 20)], 1, 0),  # seen before
    ],
)
def test_a_packet_that_was_overtaken_was_not_sent_again(
    tmp_path: Path, order: list[tuple[int, int, int]], again: int, reordered: int
) -> None:
    found = counts(scanned(tmp_path, burst(*order)))
    assert (found["again"], found["reordered"]) == ([again, 0], [reordered, 0])


@pytest.mark.parametrize(("number", "reordered"), [(10, 1), (12, 0)])
def test_the_first_packet_of_a_capture_can_have_overtaken_another(tmp_path: Path, number: int, reordered: int) -> None:
    segments = burst((3, 11, 0), (2, number, 300), (4, 13, 400))[4:]
    assert counts(scanned(tmp_path, segments))["reordered"] == [reordered, 0]


def test_an_ack_overtakes_too(tmp_path: Path) -> None:
    segments = burst((1, 11, 0), (3, 13, 10), (3, 13, 20), (2, 12, 300))
    segments[5] = replace(segments[5], length=0)
    found = counts(scanned(tmp_path, segments))
    assert (found["again"], found["reordered"]) == ([0, 0], [1, 0])


def idle(*extra: tuple[int, int, int]) -> list[Segment]:
    """A conversation before whose FIN the client is idle, and (s later, number, length) that it sends then."""
    segments = w.conversation()
    last = segments[-4]  # the last ACK of data
    assert not last.up
    probes = []
    for after_s, seq, length in extra:
        time_ns = last.time_ns + after_s * 1000 * MS
        probes.append(Segment(time_ns, True, ACK, seq, 5000, length, number=500 + after_s))
        probes.append(Segment(time_ns + 20 * MS, False, ACK, 5000, last.ack, number=500 + after_s))
    end = [replace(s, time_ns=s.time_ns + 200_000 * MS) for s in segments[-3:]]
    return [*segments[:-3], *probes, *end]


def test_the_octet_of_a_keep_alive_is_no_data(tmp_path: Path) -> None:
    """RFC 9293, 3.8.4: below the next number, with everything acknowledged."""
    probes = [(45, 20_999, 1), (90, 20_999, 1), (135, 20_999, 0)]
    of = scanned(tmp_path, idle(*probes))
    assert counts(of)["again"] == [0, 0]
    assert counts(of)["bytes"] == [20_000, 0]
    records, found = assessed(tmp_path / "a", of.path, at="client")
    values = found.metrics[records.flows[0]]
    assert (values["retransmissions"], values["retransmission_timeouts"]) == (0, 0)
    assert [entry for entry in found.violations if entry["rule"].startswith("rto")] == []
    assert records.packets["length"].to_pylist().count(1) == 0


@pytest.mark.parametrize("probe", [(45, 20_998, 1), (45, 20_000, 1000)])
def test_other_data_that_was_acknowledged_was_sent_again(tmp_path: Path, probe: tuple[int, int, int]) -> None:
    assert counts(scanned(tmp_path, idle(probe)))["again"] == [1, 0]


def test_an_octet_that_was_not_acknowledged_was_sent_again(tmp_path: Path) -> None:
    segments = w.conversation()
    sent = replace(segments[3], length=1)
    again = replace(sent, time_ns=sent.time_ns + 5 * MS, number=99)
    assert counts(scanned(tmp_path, [*segments[:3], sent, again]))["again"] == [1, 0]


def test_a_file_in_any_order_counts_as_by_time(tmp_path: Path) -> None:
    segments = w.conversation(reply=5)
    (tmp_path / "plain").mkdir()
    want = counts(scanned(tmp_path / "plain", segments))
    random.Random(1).shuffle(segments)
    of = scanned(tmp_path, segments)
    assert counts(of) == want
    assert want["again"] == [0, 0]
    assert any(note.endswith("sorted by time") for note in of.notes)
    without = scan(of.path)
    assert counts(without)["again"] != [0, 0]
    assert "they are counted in the file's order" in without.notes
    for data, at in ((of, "client"), (of, "server")):
        assert choose([data], at).packets == len(segments)


def test_the_copy_by_time_keeps_what_the_frames_say(tmp_path: Path) -> None:
    """Which packets came in and went out, ECN, options, IPv6, lengths of frames that are cut."""
    segments = w.over_ipv6(w.conversation(), extensions=b"\x06\x00" + bytes(6))
    other = [segments[1], segments[0], *segments[2:]]
    (tmp_path / "work").mkdir()
    of = [
        scan(w.write(tmp_path / name, w.pcap(some, "cooked", snap=120)), tmp_path / "work")
        for name, some in (("plain", segments), ("other", other))
    ]
    for name in (*COUNTS, "outgoing", "incoming", "mss", "wscale", "ttl", "first_ns", "last_ns", "syn_ns", "ack_ns"):
        assert np.array_equal(of[0].connections[name], of[1].connections[name]), name
    records = [
        records_of(tmp_path / name, file.path)[0].packets.to_pylist() for name, file in zip("ab", of, strict=True)
    ]
    assert records[0] == records[1]


def test_a_capture_that_was_appended_to_itself_counts_once(tmp_path: Path) -> None:
    segments = w.conversation(reply=3)
    segments.append(replace(segments[-1], time_ns=segments[-1].time_ns + MS, flags=RST, number=99))
    (tmp_path / "plain").mkdir()
    want = counts(scanned(tmp_path / "plain", segments))
    of = scanned(tmp_path, segments * 2)
    assert counts(of) == want
    assert f"{len(segments)} packets are twice in the file: their copies are left out" in of.notes
    (entry,) = listed(choose([of], "client"))
    assert (entry.packets, entry.up, entry.down, entry.resets) == (len(segments), 20_000, 3_000, 1)


def test_packets_of_other_lengths_are_no_copies(tmp_path: Path) -> None:
    segments = w.conversation(data=1)[:4]
    first = replace(segments[3], number=7)
    more = [replace(first, time_ns=first.time_ns + n * 1000, length=1000 - n) for n in range(1, 4)]
    assert scanned(tmp_path, [*segments[:3], first, *more]).connections["copies"].sum() == 0


def test_three_resets_without_a_number_are_no_copies(tmp_path: Path) -> None:
    segments = w.conversation(data=1)[:4]
    resets = [Segment(segments[-1].time_ns + n * 1000, False, RST, 5000, 0) for n in range(3)]
    assert counts(scanned(tmp_path, [*segments, *resets]))["resets"] == [0, 3]


@pytest.mark.parametrize("with_syn", [True, False])
def test_a_window_whose_scale_is_unknown_holds_nobody_up(tmp_path: Path, with_syn: bool) -> None:
    """A window of 7 is 896 bytes by the scale of the SYNs; without them it could be anything."""
    segments = w.conversation(data=40)
    later = 3000 * MS
    segments = [*segments[:41], *(replace(s, time_ns=s.time_ns + later) for s in segments[41:])]
    segments = [replace(s, window=7) if not s.up and not s.flags & 2 else s for s in segments]
    _, found = assessed(
        tmp_path / "a", w.write(tmp_path / "c", w.pcap(segments if with_syn else segments[3:])), at="client"
    )
    causes = set(found.stalls["cause"].to_pylist())
    assert causes == ({"window"} if with_syn else {"application"})


def test_what_follows_a_message_that_asks_for_smaller_packets_is_not_judged(tmp_path: Path) -> None:
    segments = w.conversation()
    quoted = segments[5].packet()[:28]
    icmp = bytes([3, 4, 0, 0, 0, 0]) + struct.pack(">H", 1000) + quoted
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(icmp), 1, 0, 64, 1, 0) + bytes([10, 0, 0, 9, 10, 0, 0, 1])
    frame = w.LINKS["ethernet"][1](segments[5]) + head + icmp
    record = struct.pack("<IIII", segments[5].time_ns // 10**9, segments[5].time_ns % 10**9, len(frame), len(frame))
    data = w.pcap(segments[:6]) + record + frame + w.pcap(segments[6:])[24:]
    (tmp_path / "work").mkdir()
    of = scan(w.write(tmp_path / "c.pcap", data), tmp_path / "work")
    assert of.connections["too_big"].tolist() == [[1, 0]]
    records, _, _ = records_of(tmp_path / "a", of.path, at="client")
    assert list(records.outcome.unjudged.values()) == [
        "an ICMP message asked for smaller packets, which are sent at once"
    ]


def test_old_files_and_times_that_can_not_be(tmp_path: Path) -> None:
    """Before pcap 2.3 the captured length was the second one; a fraction above a second stops nothing."""
    segments = w.conversation()
    old = bytearray(w.pcap(segments, snap=60))
    struct.pack_into("<HH", old, 4, 2, 2)
    at = 24
    while at < len(old):
        captured, original = struct.unpack_from("<II", old, at + 8)
        struct.pack_into("<II", old, at + 8, original, captured)
        at += 16 + captured
    assert scan(w.write(tmp_path / "old", bytes(old))).tcp == len(segments)
    odd = bytearray(w.pcap(segments))
    struct.pack_into("<I", odd, 28, 2 * 10**9)
    of = scan(w.write(tmp_path / "odd", bytes(odd)))
    assert of.tcp == len(segments)
    assert "1 packets have a time whose fraction is above a second" in of.notes[0]
    short = w.pcap([replace(segments[3], total=30)])
    with pytest.raises(RecordsError, match="1 shorter than their headers"):
        scan(w.write(tmp_path / "short", short))
