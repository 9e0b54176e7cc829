# SPDX-License-Identifier: Apache-2.0
"""Reading pcap files: all kinds of them, cut ones, and damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.records import RecordsError
from testctl.records.packets import read_packets
from testctl.records.schema import SYN, numbers_of

from controller.tests.support.synthetic import bulk, frames, write_pcap

FLOW = {"name": "bulk", "from": "sender", "to": "receiver", "generator": "tgen", "server_port": 5001,
        "client_port": 40000, "parallel": 1, "options": {}}  # fmt: skip
POINT = PointSpec.from_json({"id": "made", "tuples": [], "settings": {}, "flows": [FLOW], "topology": {}})
OUTCOME = Outcome.from_json({"t0_ns": 0, "addresses": {"sender": "10.0.0.1", "receiver": "10.0.0.2"}, "flows": {}})
HEADER, RECORD = 24, 16


def read(*paths: Path) -> tuple[pa.Table, list[str]]:
    """The packets of captures of the sender and, if there is a second one, of the receiver, and the notes."""
    return read_packets(dict(zip(("sender", "receiver"), paths, strict=False)), POINT, OUTCOME)


def packets(count: int, **given: Any) -> dict[str, Any]:
    """Data of the flow."""
    return frames(count, sport=40000, dport=5001, **given)


def written(path: Path, count: int = 3, **given: Any) -> tuple[Path, list[int]]:
    """A capture of data, and where its records begin."""
    write_pcap(path, packets(count, time_ns=np.arange(count), **given))
    data, at, found = path.read_bytes(), HEADER, []
    while at < len(data):
        found.append(at)
        at += RECORD + struct.unpack_from("<I", data, at + 8)[0]
    return path, found


def changed(path: Path, *values: tuple[int, int]) -> None:
    """Set words of a file: (where, value)."""
    data = bytearray(path.read_bytes())
    for at, value in values:
        struct.pack_into("<I", data, at, value)
    path.write_bytes(data)


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("nanoseconds", [False, True])
@pytest.mark.parametrize("vlan", [None, 5])
def test_all_kinds_of_files_are_read(tmp_path: Path, big_endian: bool, nanoseconds: bool, vlan: int | None) -> None:
    path, times = tmp_path / "a.pcap", [1000, 2_000, 3_000_001_000]
    write_pcap(path, packets(3, time_ns=times, length=100), big_endian=big_endian, nanoseconds=nanoseconds, vlan=vlan)
    table, notes = read(path)
    assert numbers_of(table, "time_ns").tolist() == times
    assert numbers_of(table, "length").tolist() == [100] * 3
    assert numbers_of(table, "wire_bytes").tolist() == [166 + 4 * (vlan is not None)] * 3
    assert not [note for note in notes if "SYN" not in note]


def test_captures_are_merged_by_time_and_those_of_one_time_by_name(tmp_path: Path) -> None:
    files = bulk(10_000)
    for where, seen in files.items():
        write_pcap(tmp_path / where, seen)
    table, _ = read(tmp_path / "sender", tmp_path / "receiver")
    times = numbers_of(table, "time_ns")
    assert table.num_rows == sum(len(seen["time_ns"]) for seen in files.values())
    assert (np.diff(times) >= 0).all()
    same, _ = read(tmp_path / "sender", tmp_path / "sender")
    assert same.column("where").to_pylist()[:4] == ["receiver", "sender"] * 2


def test_a_capture_that_is_not_in_order_of_time(tmp_path: Path) -> None:
    """Its packets are sorted, numbers are taken in the order of the file, also where SACK blocks are."""
    seen = bulk(10_000)["sender"]
    seen["sacks"][5000:, :2] = (7, 9)
    write_pcap(tmp_path / "a.pcap", seen)
    straight, _ = read(tmp_path / "a.pcap")
    order = np.arange(len(seen["time_ns"]))
    order[6000:6100] = order[6000:6100][::-1]
    write_pcap(tmp_path / "b.pcap", {name: column[order] for name, column in seen.items()})
    turned, _ = read(tmp_path / "b.pcap")
    for name in straight.schema.names:
        if name != "retrans":
            assert turned.column(name).to_pylist() == straight.column(name).to_pylist(), name
    assert turned.column("retrans").to_pylist().count(True) > 50


@pytest.mark.parametrize("late", [1, 5000])
def test_a_syn_after_data_still_is_the_stream_s_first_number(tmp_path: Path, late: int) -> None:
    """Behind the records that are looked at first, too."""
    seen = packets(late + 2, time_ns=np.arange(late + 2), length=10)
    seen["seq"] = 1000 + 10 * np.arange(late + 2)
    seen["flags"][late], seen["seq"][late] = SYN, 499
    write_pcap(tmp_path / "a.pcap", seen)
    table, notes = read(tmp_path / "a.pcap")
    assert numbers_of(table, "seq")[[0, late, -1]].tolist() == [500, -1, 500 + 10 * (late + 1)]
    assert notes == []


@pytest.mark.parametrize("cut", [1, 15, 16, 20, 75])
def test_last_record_that_is_cut_is_left_out(tmp_path: Path, cut: int) -> None:
    path, _ = written(tmp_path / "a.pcap", 400)
    path.write_bytes(path.read_bytes()[:-cut])
    table, notes = read(path)
    assert table.num_rows == 399
    assert notes[0] == "sender: the capture ends within a record, which is left out"


def test_empty_capture_has_no_records(tmp_path: Path) -> None:
    table, notes = read(written(tmp_path / "a.pcap", 0)[0])
    assert table.num_rows == 0
    assert notes == []


def test_a_frame_that_is_cut_before_tcp_ends_is_no_packet_and_options_that_are_cut_are_none(tmp_path: Path) -> None:
    """No byte of the next record is taken for one of this."""
    frame = 14 + 20 + 32
    for captured in range(frame):
        path = tmp_path / "a.pcap"
        write_pcap(path, packets(2, time_ns=[1, 2], tsval=7), snaplen=128)
        whole = path.read_bytes()
        first = bytearray(whole[HEADER : HEADER + RECORD + captured])
        struct.pack_into("<I", first, 8, captured)
        path.write_bytes(whole[:HEADER] + bytes(first) + whole[HEADER + RECORD + frame :])
        table, _ = read(path)
        assert table.num_rows == (2 if captured >= 14 + 20 + 20 else 1)
        assert numbers_of(table, "tsval").tolist() == ([-1, 7] if table.num_rows == 2 else [7])


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (8, 0x7FFFFFFF, "want a captured length up to 128; got 2147483647"),
        (4, 10**9, "want a fraction of a second below 1000000000; got 1000000000"),
        (12, 5, "want a captured length up to the packet's 5; got 66"),
    ],
)
def test_damaged_record_is_named_with_its_offset(tmp_path: Path, field: int, value: int, words: str) -> None:
    path, starts = written(tmp_path / "a.pcap", 5000)
    for number in (1, 4900):
        before = path.read_bytes()
        changed(path, (starts[number] + field, value))
        with pytest.raises(RecordsError, match=rf"a\.pcap: byte {starts[number]}: {words}"):
            read(path)
        path.write_bytes(before)


def test_of_several_damaged_places_the_first_is_named_and_a_length_goes_first(tmp_path: Path) -> None:
    one, starts = written(tmp_path / "one.pcap", 100)
    two, _ = written(tmp_path / "two.pcap", 100)
    changed(one, (starts[50] + 4, 10**9))
    changed(two, (starts[20] + 4, 10**9))
    with pytest.raises(RecordsError, match=rf"two\.pcap: byte {starts[20]}"):
        read(one, two)  # the receiver's, whose name comes first
    changed(two, (starts[90] + 8, 129))
    with pytest.raises(RecordsError, match=rf"two\.pcap: byte {starts[90]}: want a captured length up to 128; got 129"):
        read(one, two)
    one.write_bytes(b"none")
    with pytest.raises(RecordsError, match=r"two\.pcap"):
        read(one, two)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "want a pcap file header of 24 bytes; got a file of 0 bytes"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "want a pcap magic number"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 113), r"want link type 1 \(Ethernet\); got 113"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    with pytest.raises(RecordsError, match=words):
        read(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match=r"none\.pcap: can't be read: No such file"):
        read(tmp_path / "none.pcap")
