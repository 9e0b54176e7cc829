# SPDX-License-Identifier: Apache-2.0
"""Reading pcap files: all kinds of them, cut ones, and damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from testctl.records import RecordsError
from testctl.records import pcap as pcap_module
from testctl.records.pcap import read_pcap

from controller.tests.support.synthetic import bulk, frames, write_pcap


def write(path: Path, records: list[bytes], *, snaplen: int = 128, link: int = 1) -> Path:
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, link)
    path.write_bytes(head + b"".join(struct.pack("<IIII", 1, 2, len(r), len(r)) + r for r in records))
    return path


def walked(path: Path) -> list[int]:
    """Offsets of records by a plain loop."""
    data, at, found = path.read_bytes(), 24, []
    while at + 16 <= len(data):
        found.append(at)
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    return found


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_all_kinds_of_files_are_read(tmp_path: Path, big_endian: bool, nanoseconds: bool) -> None:
    path = tmp_path / "a.pcap"
    write_pcap(path, frames(3, time_ns=[1, 2_000, 3_000_001_000]), big_endian=big_endian, nanoseconds=nanoseconds)
    capture = read_pcap(path)
    assert (len(capture.offsets), capture.big_endian, capture.truncated) == (3, big_endian, False)
    assert capture.fraction_ns == (1 if nanoseconds else 1000)


def test_chains_find_what_the_plain_loop_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pcap"
    write_pcap(path, bulk(10_000)["sender"])
    monkeypatch.setattr(pcap_module, "_CHAINS", 37)
    monkeypatch.setattr(pcap_module, "_SEQUENTIAL_BELOW", 0)
    monkeypatch.delattr(pcap_module._Finder, "_one_by_one")
    assert read_pcap(path).offsets.tolist() == walked(path)


def test_payload_that_looks_like_record_headers_does_not_mislead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    lure = struct.pack("<IIII", 1, 2, 16, 16)
    records = [lure * 7 + bytes(int(n)) for n in rng.integers(0, 16, 5_000)]
    path = write(tmp_path / "a.pcap", records)
    monkeypatch.setattr(pcap_module, "_CHAINS", 50)
    monkeypatch.setattr(pcap_module, "_SEQUENTIAL_BELOW", 0)
    assert read_pcap(path).offsets.tolist() == walked(path)


@pytest.mark.parametrize("cut", [1, 15, 16, 20, 75])
@pytest.mark.parametrize("together", [False, True])
def test_last_record_that_is_cut_is_left_out(
    tmp_path: Path, cut: int, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.pcap", [bytes(60)] * 400)
    path.write_bytes(path.read_bytes()[:-cut])
    if together:
        monkeypatch.setattr(pcap_module, "_CHAINS", 5)
        monkeypatch.setattr(pcap_module, "_SEQUENTIAL_BELOW", 0)
    capture = read_pcap(path)
    assert capture.truncated
    assert len(capture.offsets) == 399


def test_empty_capture_has_no_records(tmp_path: Path) -> None:
    capture = read_pcap(write(tmp_path / "a.pcap", []))
    assert len(capture.offsets) == 0
    assert not capture.truncated


def test_damaged_record_is_named_with_its_offset(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pcap", [bytes(60)] * 3)
    data = bytearray(path.read_bytes())
    data[24 + 76 + 8 : 24 + 76 + 12] = struct.pack("<I", 0x7FFFFFFF)
    path.write_bytes(data)
    with pytest.raises(RecordsError, match=r"a\.pcap: byte 100: want a captured length up to 128; got 2147483647"):
        read_pcap(path)


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
        read_pcap(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match=r"none\.pcap: can't be read: No such file"):
        read_pcap(tmp_path / "none.pcap")
