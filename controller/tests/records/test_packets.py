# SPDX-License-Identifier: Apache-2.0
"""The packets table: relative numbers, options, merged packets, and what is not a flow's."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from testctl.records import PACKETS, Records, RecordsError, load_raw
from testctl.records.schema import ACK, AE, SYN

from controller.tests.support.synthetic import T0_NS, Conversation, bulk, frames, joined, save, write_point

HIGH = 2**32 - 3000


def column(records: Records, name: str, where: str, direction: int = 0) -> list[int]:
    codes, names = records.codes("where")
    rows = (codes == names.index(where)) & (records.column("direction") == direction)
    found: list[int] = records.column(name)[rows].tolist()
    return found


def load(tmp_path: Path, talk: Conversation, **given: object) -> Records:
    write_point(tmp_path, talk.captures(), **given)  # type: ignore[arg-type]
    return load_raw(tmp_path)


def test_numbers_are_relative_and_do_not_wrap(tmp_path: Path) -> None:
    talk = Conversation(isn=HIGH)
    for n in range(5):
        talk.data(100 + 20 * n, 1448 * n)
        talk.ack(115 + 20 * n, 1448 * (n + 1))
    records = load(tmp_path, talk)
    assert column(records, "seq", "sender") == [-1, 0, 1448, 2896, 4344, 5792]
    assert column(records, "ack", "sender", 1) == [0, 1448, 2896, 4344, 5792, 7240]
    assert column(records, "ack", "sender")[0] == -1
    assert column(records, "time_ns", "receiver")[1] == 110_000
    assert not any(column(records, "retrans", "sender"))
    assert records.packets.schema == PACKETS
    assert records.notes == []


def test_more_than_four_gigabytes_are_counted_on(tmp_path: Path) -> None:
    talk = Conversation(isn=5)
    step = 2**30
    for n in range(12):
        talk.data(100 + n, step * n)
    assert column(load(tmp_path, talk), "seq", "receiver")[-1] == 11 * step


def test_capture_that_begins_within_a_connection_counts_from_its_first_packet(tmp_path: Path) -> None:
    talk = Conversation(isn=HIGH, hello=False)
    for n in range(2, 5):
        talk.data(100 + n, 1448 * n)
    talk.ack(120, 1448 * 5)
    records = load(tmp_path, talk)
    assert column(records, "seq", "receiver") == [0, 1448, 2896]
    assert column(records, "ack", "sender", 1) == [4344]
    assert records.notes[0] == (
        "bulk, connection 0, forward: no SYN captured; numbers are relative to the first one seen"
    )


def test_retransmissions_and_partial_overlaps_are_flagged(tmp_path: Path) -> None:
    talk = Conversation()
    for n, (seq, length) in enumerate([(0, 1000), (1000, 1000), (0, 1000), (1500, 1000), (2500, 10), (2510, 0)]):
        talk.data(100 + n, seq, length)
    records = load(tmp_path, talk)
    assert column(records, "retrans", "sender") == [False, False, False, True, True, False, False]


def test_sack_blocks_are_relative_also_over_the_wrap(tmp_path: Path) -> None:
    talk = Conversation(isn=2**32 - 2000)
    talk.data(100, 0)
    talk.ack(120, 1448, sacks=[2896, 4344])
    talk.ack(130, 1448, sacks=[7240, 8688, 2896, 4344, 10136, 11584])
    records = load(tmp_path, talk)
    assert column(records, "sack1_start", "sender", 1)[-2:] == [2896, 7240]
    assert column(records, "sack1_end", "sender", 1)[-2:] == [4344, 8688]
    assert column(records, "sack3_end", "sender", 1)[-2:] == [-1, 11584]
    assert set(column(records, "sack4_start", "sender", 1)) == {-1}
    assert set(column(records, "sack1_start", "sender")) == {-1}


def test_accurate_ecn_has_its_ninth_flag_and_the_counters_of_its_option(tmp_path: Path) -> None:
    """Kinds 172 and 174 have their counters in opposite orders, and may have fewer of them."""
    talk = Conversation()
    talk.data(100, 0)
    for at, number in ((120, 10), (130, 20), (140, 30), (150, 40)):
        talk.ack(at, number, sacks=[number, number + 1], flags=ACK | (AE if number == 10 else 0))
    write_point(tmp_path, talk.captures())
    file = tmp_path / "raw" / "sender" / "capture.pcap"
    parts = file.read_bytes().split(b"\1\1\5\x0a")
    options = [b"\xac\x0b\0\0\1\0\0\2\0\0\3\1", b"\xae\x08\0\0\1\xff\xff\xff\1\1\1\1", b"\xac\2" + b"\1" * 10]
    changed = parts[0] + b"".join(option + part[8:] for option, part in zip(options, parts[1:4], strict=True))
    file.write_bytes(changed + b"\1\1\5\x0a" + parts[4])
    records = load_raw(tmp_path)
    assert column(records, "ae", "sender", 1) == [0, 1, 0, 0, 0]
    assert column(records, "accecn_e0", "sender", 1) == [-1, 1, -1, -1, -1]
    assert column(records, "accecn_ce", "sender", 1) == [-1, 2, 0xFFFFFF, -1, -1]
    assert column(records, "accecn_e1", "sender", 1) == [-1, 3, 1, -1, -1]
    assert column(records, "sack1_start", "sender", 1) == [-1, -1, -1, -1, 40]
    assert column(records, "ae", "receiver", 1) == [0, 1, 0, 0, 0]


def test_the_digest_of_a_point_without_accurate_ecn_is_what_it_was_before_its_columns(tmp_path: Path) -> None:
    talk = Conversation()
    talk.data(100, 0)
    before = load(tmp_path / "a", talk)
    assert before.digest() == "ba587c78a622a204681959c496f209e355a455dc5bf26df15211e6ad5f0f9e19"
    talk.ack(120, 1448, flags=ACK | AE)
    assert load(tmp_path / "b", talk).digest() != before.digest()


def test_window_is_scaled_but_for_the_syn(tmp_path: Path) -> None:
    talk = Conversation()
    talk.ack(50, 0, window=9)
    assert column(load(tmp_path, talk), "window", "sender", 1) == [500, 9 << 7]


@pytest.mark.parametrize("settings", [{}, {"sender": {"mtu": 1500}, "receiver": {"mtu": 1500}}])
def test_merged_packets_stand_for_several_on_the_wire(tmp_path: Path, settings: dict[str, dict[str, int]]) -> None:
    talk = Conversation()
    for n in range(3):
        talk.data(100 + n, 1448 * n, arrives=False)
    talk.data(104, 1448 * 3, 100, arrives=False)
    captures = talk.captures()
    merged = frames(1, sport=40000, dport=5001, time_ns=T0_NS + 200_000, seq=1001, ack=78, length=4444)
    captures["receiver"] = joined([captures["receiver"], merged])
    records = load_raw(write_point(tmp_path, captures, settings=settings))
    assert column(records, "segs", "receiver")[-1] == 4
    assert column(records, "wire_bytes", "receiver")[-1] == 4444 + 4 * 66
    assert sum(column(records, "wire_bytes", "sender")[1:]) == 4444 + 4 * 66


def test_over_ipv6_a_packet_has_room_for_less(tmp_path: Path) -> None:
    """1440 bytes are what is left of 1500 after its headers without options: with timestamps they are of two."""
    talk = Conversation()
    talk.data(100, 0, 1428, arrives=False)
    talk.data(101, 1428, 12, arrives=False)
    captures = talk.captures()
    merged = frames(1, sport=40000, dport=5001, time_ns=T0_NS + 200_000, seq=1001, ack=78, length=1440)
    captures["receiver"] = joined([captures["receiver"], merged])
    records = load_raw(write_point(tmp_path, captures, addresses=("fd00::1", "fd00::2")))
    assert column(records, "segs", "receiver")[-1] == 2
    assert column(records, "wire_bytes", "receiver")[-1] == 1440 + 2 * 86


def test_small_packets_merged_into_one_that_fits_are_told_by_what_was_sent(tmp_path: Path) -> None:
    """Not what was sent by what arrived: a longer packet may have been lost."""
    talk = Conversation()
    talk.data(100, 0, 724, arrives=False)
    talk.data(101, 724, 724, arrives=False)
    captures = talk.captures()
    merged = frames(1, sport=40000, dport=5001, time_ns=T0_NS + 200_000, seq=1001, ack=78, length=1448)
    captures["receiver"] = joined([captures["receiver"], merged])
    records = load_raw(write_point(tmp_path / "merged", captures))
    assert column(records, "segs", "receiver")[-1] == 2
    assert column(records, "wire_bytes", "receiver")[-1] == 1448 + 2 * 66
    lost = Conversation()
    lost.data(100, 0, 1448, arrives=False)
    lost.data(101, 0, 724)
    assert column(load(tmp_path / "lost", lost), "segs", "sender") == [1, 1, 1]


def test_merged_packets_at_both_ends_are_cut_by_the_mtu(tmp_path: Path) -> None:
    talk = Conversation()
    talk.data(100, 0, 2 * 8948)
    records = load(tmp_path, talk, settings={"sender": {"mtu": 9000}, "receiver": {"mtu": 9000}})
    assert column(records, "segs", "sender") == [1, 2]


def test_packet_longer_than_its_length_field_can_say(tmp_path: Path) -> None:
    talk = Conversation()
    talk.data(100, 0, 100_000)
    assert column(load(tmp_path, talk), "length", "receiver")[-1] == 100_000


@pytest.mark.parametrize("vlan", [None, 7])
@pytest.mark.parametrize("addresses", [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")])
def test_ipv6_and_vlan(tmp_path: Path, vlan: int | None, addresses: tuple[str, str]) -> None:
    talk = Conversation()
    talk.data(100, 0, 1000, ecn=3)
    talk.ack(120, 1000, sacks=[2000, 3000])
    records = load(tmp_path, talk, addresses=addresses, vlan=vlan)
    headers = 14 + (4 if vlan else 0) + (20 if "." in addresses[0] else 40) + 32
    assert column(records, "wire_bytes", "sender")[-1] == 1000 + headers
    assert column(records, "ecn", "receiver")[-1] == 3
    assert column(records, "sack1_end", "sender", 1)[-1] == 3000
    assert column(records, "out", "sender") == [True, True]
    assert column(records, "out", "receiver") == [False, False]


def test_packets_of_other_ports_addresses_and_protocols_are_left_out(tmp_path: Path) -> None:
    talk = Conversation()
    talk.data(100, 0)
    captures = talk.captures()
    other = [
        frames(1, sport=40001, dport=5001, time_ns=T0_NS),  # beyond the flow's connections
        frames(1, sport=40000, dport=5002, time_ns=T0_NS),
        frames(1, src=1, sport=40000, dport=5001, time_ns=T0_NS, flags=SYN | ACK),
    ]
    captures["sender"] = joined([*other[:2], captures["sender"]])
    write_point(tmp_path, captures)
    path = tmp_path / "raw" / "sender" / "capture.pcap"
    data = bytearray(path.read_bytes())
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    udp = bytes(12) + b"\x08\x00\x45" + bytes(8) + b"\x11" + bytes(36)
    stub = bytes(20)
    path.write_bytes(data + b"".join(struct.pack("<IIII", 1, 2, len(r), len(r)) + r for r in (arp, udp, stub)))
    assert column(load_raw(tmp_path), "seq", "sender") == [-1, 0]


def test_snap_length_within_the_options_keeps_the_packet(tmp_path: Path) -> None:
    talk = Conversation()
    talk.data(100, 0)
    talk.ack(120, 1448, sacks=[2896, 4344])
    records = load(tmp_path, talk, snaplen=68)
    assert column(records, "length", "sender") == [0, 1448]
    assert column(records, "ack", "sender", 1) == [0, 1448]
    assert column(records, "tsval", "sender")[1] > 0
    assert column(records, "sack1_start", "sender", 1) == [-1, -1]


def test_parallel_connections_are_apart(tmp_path: Path) -> None:
    parts: dict[str, list[dict[str, np.ndarray]]] = {"sender": [], "receiver": []}
    for conn in range(3):
        talk = Conversation(conn=conn, isn=10**9 * conn)
        talk.data(100, 0)
        talk.data(150, 1448)
        for where, seen in talk.captures().items():
            parts[where].append(seen)
    records = load_raw(write_point(tmp_path, {where: joined(seen) for where, seen in parts.items()}, parallel=3))
    assert sorted(zip(column(records, "conn", "sender"), column(records, "seq", "sender"), strict=True)) == [
        (conn, seq) for conn in range(3) for seq in (-1, 0, 1448)
    ]


def test_table_is_sorted_by_time_and_the_same_for_any_isn(tmp_path: Path) -> None:
    digests = set()
    for isn in (1, HIGH):
        records = load_raw(write_point(tmp_path / str(isn), bulk(2000, isn=isn)))
        assert bool((np.diff(records.column("time_ns")) >= 0).all())
        digests.add(records.digest())
    assert len(digests) == 1


def test_digest_sees_a_change_of_one_packet(tmp_path: Path) -> None:
    digests = set()
    for late in (0, 1):
        talk = Conversation()
        talk.data(100 + late, 0)
        digests.add(load_raw(write_point(tmp_path / str(late), talk.captures())).digest())
    assert len(digests) == 2


def test_point_without_captures_has_empty_tables(tmp_path: Path) -> None:
    records = load_raw(write_point(tmp_path, {}))
    assert records.packets.num_rows == records.tcp_info.num_rows == 0
    assert Records.load(save(records, tmp_path / "records")) == records


@pytest.mark.parametrize(
    "damage", ["records.json", "point.json", "outcome.json", "packets.parquet", "tcp_info.parquet"]
)
def test_damaged_records_are_named(tmp_path: Path, damage: str) -> None:
    save(load_raw(write_point(tmp_path, bulk(10))), tmp_path / "records")
    (tmp_path / "records" / damage).write_text("nonsense")
    with pytest.raises(RecordsError, match=damage):
        Records.load(tmp_path / "records")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "want counters; it is not there"),
        ('{"counters": {"sender": 3}, "notes": []}', "want an object at counters.sender; got 3"),
        ('{"counters": {"sender": {"snmp": {"Tcp.InSegs": "x"}}}, "notes": []}', "Tcp.InSegs"),
        ('{"counters": {}, "notes": [3]}', "want a text at notes.0.; got 3"),
    ],
)
def test_records_of_another_shape_are_refused_with_the_place(tmp_path: Path, text: str, why: str) -> None:
    save(load_raw(write_point(tmp_path, bulk(10))), tmp_path / "records")
    (tmp_path / "records" / "records.json").write_text(text)
    with pytest.raises(RecordsError, match=rf"records\.json: .*{why}"):
        Records.load(tmp_path / "records")


def test_missing_outcome_is_named(tmp_path: Path) -> None:
    write_point(tmp_path, bulk(10))
    (tmp_path / "raw" / "outcome.json").unlink()
    with pytest.raises(RecordsError, match=r"outcome\.json: can't be read as JSON"):
        load_raw(tmp_path)


def test_files_may_lie_in_the_directory_of_the_task_that_wrote_them(tmp_path: Path) -> None:
    flat = load_raw(write_point(tmp_path, bulk(10))).digest()
    entity = tmp_path / "raw" / "sender"
    (entity / "capture").mkdir()
    (entity / "capture.pcap").rename(entity / "capture" / "capture.pcap")
    assert load_raw(tmp_path).digest() == flat
    (entity / "capture.pcap").write_bytes(b"")
    with pytest.raises(RecordsError, match=r"sender: want one capture\.pcap; got capture\.pcap, capture/capture\.pcap"):
        load_raw(tmp_path)
