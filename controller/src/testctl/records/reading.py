# SPDX-License-Identifier: Apache-2.0
"""One reading of a point's captures and telemetry by the C code of native/, which fills the columns of its packets."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from testctl_agent.spec.errors import TestbedError

from testctl.records.flow_map import FlowMap
from testctl.records.native import structures as c
from testctl.records.pcap import FILE_HEADER, Capture
from testctl.records.schema import PACKETS, RARE_COLUMNS, Array, Ints
from testctl.records.telemetry import NEEDED, Telemetry

_FEW = 4096
"""Records of each source that are read to guess what belongs to streams."""
_LEAST = 16 + 14 + 20 + 20
"""Bytes of a pcap file that a packet has at the least."""
_RARE = 1 << 16
_NO_HOST = -2
_BITS = ("retrans", "out")
_KINDS = {
    field.name: np.dtype(np.int16 if pa.types.is_dictionary(field.type) else field.type.to_pandas_dtype())
    for field in PACKETS
    if field.name not in RARE_COLUMNS and field.name not in _BITS
}
"""The columns of PACKETS that are written as numbers."""


class Reading:
    """Reads all sources; `run` returns the columns.

    captures, switches: by name, in the order of `where`; mtus: of each flow; fits: the payload
    that is in a packet of that size
    truncated: captures that end within a record; without_syn: streams whose SYN nobody saw, ascending
    rare_rows, rare: (n,) ascending, (n, 12): the values of RARE_COLUMNS of the packets that have any
    conns: a stream's number is (flow * conns + connection) * 2 + direction
    """

    def __init__(
        self,
        library: c.Library,
        captures: Mapping[str, Capture],
        switches: Mapping[str, Telemetry],
        flows: FlowMap,
        mtus: Sequence[int],
        fits: Sequence[int],
        t0_ns: int,
    ) -> None:
        self._library, self._captures, self._switches = library, captures, switches
        self.conns = max((int(p) for p in flows.parallel), default=1)
        streams = max(len(flows.names), 1) * self.conns * 2
        count = len(captures) + len(switches)
        self._sources = (c.Source * max(count, 1))()
        self._streams = np.zeros(streams, np.dtype(c.Stream))
        self._series = np.zeros((max(count, 1), streams), np.dtype(c.Series))
        places, conns = flows.of_places()
        self._flows: dict[str, Array] = {
            "by_port": flows.by_port.astype(np.int16),
            "client_port": flows.client_port.astype(np.int32),
            "parallel": flows.parallel.astype(np.int32),
            "from_": flows.source.astype(np.int16),
            "to": flows.sink.astype(np.int16),
            "place_flow": places.astype(np.int16),
            "place_conn": conns.astype(np.int16),
            "mtu": _bytes(mtus),
            "fits": _bytes(fits),
        }
        self._addresses = _addresses(flows)
        self._hosts = flows.hosts
        self._job = c.Job(
            addresses=self._addresses,
            t0_ns=t0_ns,
            count=count,
            hosts=len(captures),
            flows=max(len(flows.names), 1),
            conns=self.conns,
            places=len(places),
            known=len(flows.addresses),
            **{name: _at(column) for name, column in self._flows.items()},
        )
        self._most = sum(len(capture.data) // _LEAST for capture in captures.values())
        self._most += sum(map(len, switches.values()))
        self._bytes = {name: _memory(self._most, kind) for name, kind in _KINDS.items()}
        self.rare = np.empty((_RARE, c.RARE), np.int64)
        self.rare_rows: Ints = np.empty(_RARE, np.int64)
        self.truncated: list[str] = []
        self.without_syn: Ints = np.empty(0, np.int64)

    def run(self) -> dict[str, Array]:
        """The columns of PACKETS but RARE_COLUMNS, in order of time; bits for booleans.

        Raises RecordsError for a capture that is damaged.
        """
        self._pass(_FEW, merged=True)
        merged = True
        while True:
            given = self._give()
            if self._pass(2**63, merged=merged) == c.UNORDERED:
                merged = False
            elif np.array_equal(given, self._give()):
                break
        for source, (where, capture) in zip(self._sources, self._captures.items(), strict=False):
            if source.at != len(capture.data):
                self.truncated.append(where)
        self.without_syn = np.flatnonzero((self._streams["seen"] > 0) & (self._streams["syn_seen"] == 0))
        job = self._job
        self._library.count_segments(job)
        rows = int(job.rows)
        self.rare_rows, self.rare = self.rare_rows[: job.rares], self.rare[: job.rares]
        columns = {name: column[:rows] for name, column in self._bytes.items()}
        columns |= {name: bits[: -(-rows // 8)] for name, bits in self._bits.items()}
        return columns if merged else self._sorted(columns)

    def _pass(self, records: int, *, merged: bool) -> int:
        """Read at most `records` records of each source, from its beginning; what packets_read() returned last.

        Raises RecordsError.
        """
        job = self._job
        self._begin(records)
        job.merged = merged
        while (ended := self._library.read(job)) == c.MORE_RARE:
            self.rare_rows = np.resize(self.rare_rows, 2 * len(self.rare_rows))
            self.rare = np.resize(self.rare, (len(self.rare_rows), c.RARE))
            self._point()
        if ended == c.DAMAGED:
            checked(self._library, list(self._captures.values()))
        if ended not in (c.DONE, c.UNORDERED):
            raise TestbedError(f"reading packets ended with {ended}, and no capture is damaged")
        return int(ended)

    def _begin(self, records: int) -> None:
        job = self._job
        for number, (where, capture) in enumerate(self._captures.items()):
            self._sources[number] = _source(capture)
            self._sources[number].here = self._hosts.index(where) if where in self._hosts else _NO_HOST
        for number, telemetry in enumerate(self._switches.values(), len(self._captures)):
            self._sources[number] = _of_switch(telemetry)
        for number, source in enumerate(self._sources):
            source.where, source.records, source.last_ns = number, records, -(2**63)
        for name in ("syn_seen", "data_seen", "ack_seen", "seen"):
            self._streams[name] = 0
        self._streams["wscale"] = self._streams["wscale_where"] = -1
        self._series[:] = 0
        self._series["longest"] = -1
        self._bits = {name: np.zeros(self._most // 8 + 1, np.uint8) for name in _BITS}
        job.rows = job.rares = job.begun = 0
        self._point()

    def _point(self) -> None:
        """Set the job's pointers."""
        job = self._job
        job.sources = self._sources
        job.streams = self._streams.ctypes.data_as(type(job.streams))
        job.series = self._series.ctypes.data_as(type(job.series))
        job.to_columns = c.Columns(
            **{name: _at(column) for name, column in (self._bytes | self._bits).items()},
            rare=_at(self.rare),
            rare_row=_at(self.rare_rows),
        )
        job.most_rares = len(self.rare_rows)

    def _give(self) -> Array:
        """Set the values of whole streams by the last pass; returns a copy of them.

        base: the number of the first data byte, of the SYN; without one in any capture the first number seen of that
        direction, or failing that the first acknowledgement of the other.
        shift: what windows are scaled by, when both SYNs were seen to offer it (RFC 7323, 2.2).
        """
        streams = self._streams
        other = np.arange(len(streams)) ^ 1
        first = np.where(streams["data_seen"] > 0, streams["data_seq"], streams["acked"])
        streams["base"] = np.where(streams["syn_seen"] > 0, streams["syn_seq"] + np.uint32(1), first)
        streams["base"][(streams["syn_seen"] | streams["data_seen"] | streams["ack_seen"]) == 0] = 0
        scale = streams["wscale"]
        streams["shift"] = np.where((scale >= 0) & (scale[other] >= 0), scale, 0)
        return np.stack([streams["base"].astype(np.int64), streams["shift"]])

    def _sorted(self, columns: dict[str, Array]) -> dict[str, Array]:
        """The columns, which were read source after source, in order of time."""
        order = np.argsort(columns["time_ns"], kind="stable")
        for name, column in columns.items():  # the column in its old order is freed at once
            if name in _BITS:
                bits = np.unpackbits(column, count=len(order), bitorder="little")
                columns[name] = np.packbits(bits[order], bitorder="little")
            else:
                columns[name] = column.take(order)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        rows = rank[self.rare_rows]
        again = np.argsort(rows)
        self.rare_rows, self.rare = rows[again], self.rare[again]
        return columns


def checked(library: c.Library, captures: Sequence[Capture]) -> None:
    """Raises RecordsError for the first capture that is damaged."""
    for capture in captures:
        source = _source(capture)
        if kind := library.check(source):
            raise capture.damaged(kind, source.at)


def _memory(count: int, kind: np.dtype[Any]) -> Array:
    """A column whose pages are allocated when they are written to.

    Huge pages, which numpy would request, may take the system longer to find than all else takes.
    """
    pages = mmap.mmap(-1, max(count * kind.itemsize, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, kind, count)


def _source(capture: Capture) -> c.Source:
    return c.Source(
        data=_at(capture.data),
        size=len(capture.data),
        at=FILE_HEADER,
        fractions=capture.fractions,
        fraction_ns=capture.fraction_ns,
        longest=capture.longest,
        big_endian=capture.big_endian,
    )


def _of_switch(telemetry: Telemetry) -> c.Source:
    kind = telemetry.records.dtype
    assert kind.fields is not None
    fields = [kind.fields[name][:2] for name in NEEDED]
    source = c.Source(
        data=_at(telemetry.records),
        size=telemetry.records.nbytes,
        offset_ns=telemetry.offset_ns,
        record_bytes=kind.itemsize,
        here=_NO_HOST,
    )
    for number, (field, offset) in enumerate(fields):
        source.offsets[number], source.masks[number] = offset, (1 << 8 * field.itemsize) - 1
    return source


def _addresses(flows: FlowMap) -> Any:
    made = (c.Address * max(len(flows.addresses), 1))()
    for address, (packed, host) in zip(made, flows.addresses.items(), strict=False):
        address.bytes[: len(packed)] = packed
        address.size, address.host = len(packed), host
    return made


def _bytes(values: Sequence[int]) -> Array:
    return np.array(values, np.int64).clip(-(2**30), 2**30).astype(np.int32)


def _at(column: Array) -> int:
    return column.ctypes.data
