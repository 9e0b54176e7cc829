# SPDX-License-Identifier: Apache-2.0
"""tcp_info samples and counters."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from testctl.records import RecordsError, load_raw
from testctl.records.counters import difference, read_counters
from testctl.records.schema import TCP_INFO_FIELDS

from controller.tests.support.synthetic import T0_NS, write_point


def sample(time_ns: int, local: int, remote: int, size: int, **fields: int) -> bytes:
    info = bytearray(320)
    for name, at, width in TCP_INFO_FIELDS:
        info[at : at + width] = fields.get(name, 0).to_bytes(width, "little")
    info[6] = 7 | 9 << 4
    return struct.pack("<QHHIII", time_ns, local, remote, 1, 0, size) + bytes(info)


def write(pointdir: Path, records: list[bytes]) -> Path:
    write_point(pointdir, {})
    path = pointdir / "raw" / "sender" / "tcp_info.bin"
    path.parent.mkdir()
    path.write_bytes(b"TGI1" + struct.pack("<I", 320) + b"".join(records))
    return path


def test_layout_ends_where_the_kernels_does() -> None:
    assert TCP_INFO_FIELDS[-1] == ("total_rto_time", 244, 4)


def test_fields_are_read_and_missing_ones_are_minus_one(tmp_path: Path) -> None:
    full = sample(T0_NS + 2, 40000, 5001, 248, snd_cwnd=10, bytes_acked=2**40, pacing_rate=2**64 - 1, total_rto=3)
    short = sample(T0_NS + 1, 40000, 5001, 232, snd_cwnd=11)
    other = sample(T0_NS, 22, 999, 248)
    listening = sample(T0_NS, 5001, 0, 248)
    write(tmp_path, [full, short, other, listening])
    rows = load_raw(tmp_path).tcp_info.to_pylist()
    assert [row["time_ns"] for row in rows] == [1, 2]
    assert [row["snd_cwnd"] for row in rows] == [11, 10]
    assert [row["total_rto"] for row in rows] == [-1, 3]
    assert (rows[1]["bytes_acked"], rows[1]["pacing_rate"]) == (2**40, 2**63 - 1)
    assert (rows[1]["snd_wscale"], rows[1]["rcv_wscale"], rows[1]["flow"], rows[1]["where"]) == (7, 9, "bulk", "sender")


def test_cut_sample_is_left_out_and_noted(tmp_path: Path) -> None:
    path = write(tmp_path, [sample(T0_NS, 40000, 5001, 248)] * 2)
    path.write_bytes(path.read_bytes()[:-1])
    records = load_raw(tmp_path)
    assert records.tcp_info.num_rows == 1
    assert records.notes == ["sender: tcp_info ends within a record, which is left out"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"nope", r"tcp_info\.bin: byte 0: want a file that begins b'TGI1'; got b'nope'"),
        (b"TGI1" + struct.pack("<I", 0), "byte 4: want a tcp_info of 1 to 4096 bytes; got 0"),
        (
            b"TGI1" + struct.pack("<I", 8) + struct.pack("<QHHIII", 0, 0, 0, 1, 0, 9) + bytes(8),
            "byte 8: want at most 8",
        ),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    write(tmp_path, []).write_bytes(content)
    with pytest.raises(RecordsError, match=words):
        load_raw(tmp_path)


def test_counters_are_after_less_before(tmp_path: Path) -> None:
    queue = {"device": "eth0", "kind": "htb", "handle": "1:", "parent": "root", "backlog": 5, "extra": {"direct": 1}}
    before = {"snmp": {"Tcp.InSegs": 5}, "device": {"eth0": {"rx_bytes": 1}}, "qdisc": [{**queue, "bytes": 10}]}
    after = {
        "snmp": {"Tcp.InSegs": 7, "TcpExt.New": 1},
        "device": {"eth0": {"rx_bytes": 4}},
        "qdisc": [{**queue, "bytes": 30, "backlog": 2, "extra": {"direct": 4}}],
    }
    assert difference(before, after) == {
        "snmp": {"Tcp.InSegs": 2, "TcpExt.New": 1},
        "device": {"eth0": {"rx_bytes": 3}},
        "qdisc": [{**queue, "bytes": 20, "backlog": 2, "extra": {"direct": 3}}],
    }
    assert read_counters(tmp_path) == {}
    (tmp_path / "counters_before.json").write_text(json.dumps(before))
    (tmp_path / "counters_after.json").write_text("{")
    with pytest.raises(RecordsError, match=r"counters_after\.json"):
        read_counters(tmp_path)
