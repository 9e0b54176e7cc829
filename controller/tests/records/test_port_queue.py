# SPDX-License-Identifier: Apache-2.0
"""What a port with an AQM did completes the telemetry of its switch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from testctl.records import load_raw
from testctl.records.errors import RecordsError
from testctl.records.port_queue import DROPPED, FULL, MARKED, ROW, SENT, check_drops, with_ports
from testctl.records.schema import FATES
from testctl.records.telemetry import Telemetry

from controller.tests.support.synthetic import bulk, write_point
from controller.tests.support.synthetic_telemetry import passage, write_telemetry

KIND = np.dtype(
    [
        (name, "<u8")
        for name in ("arrival_ns", "departure_ns", "queue_bytes", "wire_bytes", "egress_port", "verdict", "fate")
    ]
    + [("ecn_out", "u1")]
)


def telemetry() -> Telemetry:
    """Six packets to port 2, three of them at one instant, and one to port 1 that the program dropped itself."""
    records = np.zeros(7, KIND)
    records["arrival_ns"] = (10, 20, 20, 20, 25, 30, 40)
    records["departure_ns"] = records["arrival_ns"]
    records["wire_bytes"] = (100, 200, 300, 400, 500, 600, 700)
    records["egress_port"] = (2, 2, 2, 2, 1, 2, 2)
    records["verdict"][4] = 1
    return Telemetry(records, 0, 0, False)


def written(path: Path, *rows: tuple[int, ...]) -> Path:
    np.array([tuple(row) for row in rows], ROW).tofile(path)
    return path


def test_a_row_belongs_to_the_packet_of_its_place(tmp_path: Path) -> None:
    rows = written(
        tmp_path / "port_queue.bin",
        (5, 50, 9, 50, 0, SENT, 0),  # before the telemetry
        (10, 110, 9, 100, 0, SENT, 1),
        (20, 0, 9, 400, 600, DROPPED, 4),  # dropped as it came: its end is known first
        (20, 210, 9, 200, 100, MARKED, 2),
        (20, 310, 9, 300, 300, SENT, 3),
        (30, 0, 9, 600, 700, FULL, 5),
        (20, 99, 8, 1, 1, SENT, 0),  # of a port of another switch
    )
    found = with_ports(telemetry(), rows, {"ports": {"9": 2, "7": 1}}).records
    assert found["departure_ns"].tolist() == [110, 210, 310, 0, 25, 0, 0]
    assert found["queue_bytes"].tolist() == [0, 100, 300, 600, 0, 700, 0]
    assert found["verdict"].tolist() == [0, 0, 0, 5, 1, 2, 0]
    assert found["ecn_out"].tolist() == [0, 3, 0, 0, 0, 0, 0]


def test_rows_of_other_packets_are_an_error(tmp_path: Path) -> None:
    rows = written(tmp_path / "port_queue.bin", (10, 110, 9, 101, 0, SENT, 1))
    with pytest.raises(RecordsError, match="port 2: want a packet of 100 bytes, as by telemetry; got 101"):
        with_ports(telemetry(), rows, {"ports": {"9": 2}})


def test_a_trimmed_packet_waits_as_what_is_left_of_it(tmp_path: Path) -> None:
    trimmed = telemetry()
    trimmed.records["fate"][0] = FATES.index("trim")
    rows = written(tmp_path / "port_queue.bin", (10, 110, 9, 66, 0, SENT, 1))
    assert with_ports(trimmed, rows, {"ports": {"9": 2}}).records["departure_ns"][0] == 110


def test_drops_that_the_ports_counted_and_no_record_has_are_an_error(tmp_path: Path) -> None:
    rows = written(tmp_path / "port_queue.bin", (10, 0, 9, 100, 0, DROPPED, 0), (3, 0, 9, 200, 0, DROPPED, 0))
    found = with_ports(telemetry(), rows, {"ports": {"9": 2}})
    qdiscs = [{"kind": "testctl_port", "extra": {"dropped": 1}}, {"kind": "pie", "extra": {}}]
    check_drops(found, rows, qdiscs)
    qdiscs[0]["extra"] = {"dropped": 2}
    with pytest.raises(RecordsError, match="want 2 packets that an AQM dropped, as its ports counted; got 1"):
        check_drops(found, rows, qdiscs)


def test_records_without_a_packet_that_a_port_counted_are_refused(tmp_path: Path) -> None:
    captures = bulk(10)
    write_point(tmp_path, captures)
    write_telemetry(tmp_path, passage(captures["sender"]))
    switch = tmp_path / "raw" / "switch"
    (switch / "port_queue").mkdir()
    written(switch / "port_queue" / "port_queue.bin")
    outcome = json.loads((tmp_path / "raw" / "outcome.json").read_text())
    outcome["collected"]["switch"]["port_queue"] = {"ports": {"9": 2}}
    (tmp_path / "raw" / "outcome.json").write_text(json.dumps(outcome))
    counts = dict.fromkeys(("bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen"), 0)
    for name, dropped in (("before", 1), ("after", 3)):
        qdisc = {"device": "s2", "kind": "testctl_port", "handle": "1:", "parent": "root", **counts}
        text = json.dumps({"snmp": {}, "device": {}, "qdisc": [qdisc | {"extra": {"dropped": dropped}}]})
        (switch / f"counters_{name}.json").write_text(text)
    with pytest.raises(RecordsError, match="want 2 packets that an AQM dropped, as its ports counted; got 0"):
        load_raw(tmp_path)
