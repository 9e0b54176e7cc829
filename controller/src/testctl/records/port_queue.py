# SPDX-License-Identifier: Apache-2.0
"""Completes a switch's telemetry by what its ports with an AQM did (agents' collector port_queue).

The program records a packet when it hands it to such a port, before it waits.  A row of the port has the bytes that
waited then, when it departs, and whether it was marked or dropped; it is of the record with the same port, arrival
and place among those of that instant.  A packet that still waits at the end has no row, and no departure.  A row
without a record is of a packet that came before the telemetry began, or of a copy for all ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from testctl.records.errors import RecordsError
from testctl.records.files import read_records
from testctl.records.schema import CE, FATES, Array, Ints
from testctl.records.telemetry import Telemetry

ROW = np.dtype([("arrived_ns", "<u8"), ("departs_ns", "<u8"), ("ifindex", "<u4"), ("bytes", "<u4"),
                ("queue_bytes", "<u4"), ("end", "<u4"), ("number", "<u8")])  # fmt: skip
SENT, MARKED, DROPPED, FULL = range(4)
"""Of a row: enum port_end of lab/kernel/lab_port.h."""
_VERDICTS = np.array([0, 0, 5, 2])
"""Of these: enum telemetry_verdict of p4c_ebpf/runtime/telemetry.h, and 5 for an AQM's drop."""
_TRIM = FATES.index("trim")


def with_ports(telemetry: Telemetry, path: Path, result: Mapping[str, Any]) -> Telemetry:
    """The telemetry with the rows of its switch's ports.  Raises RecordsError: they are not of the same packets."""
    rows, _ = read_records(path, ROW)
    records = np.array(telemetry.records)
    for index, number in result.get("ports", {}).items():
        of_port = rows[rows["ifindex"] == int(index)]
        if len(of_port):
            _complete(records, of_port, int(number), path)
    return replace(telemetry, records=records)


def check_drops(telemetry: Telemetry, path: Path, qdiscs: Iterable[Mapping[str, Any]]) -> None:
    """Raises RecordsError where not as many packets were dropped by AQMs as the switch's ports counted."""
    counted = sum(int(qdisc["extra"]["dropped"]) for qdisc in qdiscs if qdisc["kind"] == "testctl_port")
    seen = int((telemetry.records["verdict"] == _VERDICTS[DROPPED]).sum())
    if seen != counted:
        raise RecordsError(path, f"want {counted} packets that an AQM dropped, as its ports counted; got {seen}")


def _complete(records: Array, rows: Array, number: int, path: Path) -> None:
    places = np.flatnonzero((records["egress_port"] == number) & (records["verdict"] == 0))
    arrivals = records["arrival_ns"][places]
    rows = rows[np.lexsort((rows["number"], rows["arrived_ns"]))]
    records["departure_ns"][places] = 0
    if not len(places):
        return
    at = np.searchsorted(arrivals, rows["arrived_ns"]) + _nth(rows["arrived_ns"])
    known = at < len(arrivals)
    known[known] &= arrivals[at[known]] == rows["arrived_ns"][known]
    rows, at = rows[known], places[at[known]]
    trimmed = records["fate"][at] == _TRIM  # telemetry has the length that it came with
    if len(odd := np.flatnonzero((records["wire_bytes"][at] != rows["bytes"]) & ~trimmed)):
        want, got = records["wire_bytes"][at[odd[0]]], rows["bytes"][odd[0]]
        raise RecordsError(path, f"port {number}: want a packet of {want} bytes, as by telemetry; got {got}")
    records["departure_ns"][at] = rows["departs_ns"]
    records["queue_bytes"][at] = rows["queue_bytes"]
    records["verdict"][at] = _VERDICTS[rows["end"]]
    records["ecn_out"][at[rows["end"] == MARKED]] = CE


def _nth(times: Array) -> Ints:
    """How many equal times are before each of ascending times."""
    places = np.arange(len(times))
    first = np.r_[True, times[1:] != times[:-1]] if len(times) else np.empty(0, np.bool_)
    return places - np.maximum.accumulate(np.where(first, places, 0))
