# SPDX-License-Identifier: Apache-2.0
"""One table of a loaded program: its rows, in the maps and in this process.

A table keeps its own image of its part of the control map; `changed` is called with it when the
packet path must see another.  A row is written before what leads to it, and removed after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from testctl_agent.bpf.libbpf import Map, Object
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Count, Rates
from testctl_agent.switch.drivers.rows import Row, packed
from testctl_agent.switch.layout import METER, Table

_U32 = struct.Struct("=I")
_SCALE = 10**9
"""Of a meter's buckets: METER_SCALE of runtime/meter.h."""


class Rows:
    """The rows of a table of kind exact, tuples or ranges; of kind none there is only the default."""

    def __init__(self, table: Table, loaded: Object, changed: Callable[[Table, bytes], None]) -> None:
        self.table = table
        self._changed = changed
        self._map: Map | None = loaded.maps.get(f"t{table.index}")
        self._counts: Map | None = loaded.maps.get(f"d{table.index}") if table.direct else None
        self._rows: dict[tuple[object, ...], Row] = {}
        self._meters: Map | None = loaded.maps.get(f"p{table.index}") if table.meter else None
        self._free = list(range(table.capacity - 1, -1, -1)) if self._counts or self._meters else []
        self._tuples: dict[tuple[int, ...], int] = {}
        self._ids = list(range(table.tuples - 1, -1, -1))
        self._fallback = b""
        self._image = b""

    def __len__(self) -> int:
        return len(self._rows)

    def set_default(self, row: Row) -> None:
        self._fallback = packed(self.table, row)
        self._publish()

    def insert(self, row: Row) -> None:
        table = self.table
        if table.kind == "none":
            raise DriverError(f"table {table.name}: it has no keys, only a default action")
        if row.identity in self._rows:
            raise DriverError(f"table {table.name}: such a row is there already")
        if len(self._rows) >= table.capacity:
            raise DriverError(f"table {table.name}: full: {table.capacity} rows")
        if table.kind == "tuples" and row.tuple_mask not in self._tuples:
            if not self._ids:
                raise DriverError(f"table {table.name}: full: {table.tuples} different masks")
            self._tuples[row.tuple_mask] = self._ids.pop()
        if self._free:
            row.slot = self._free.pop()
        if self._counts:
            self._counts.update(_U32.pack(row.slot), bytes(16))
        if self._meters:
            self._meters.update(_U32.pack(row.slot), bytes(self._meters.value_bytes))
        self._rows[row.identity] = row
        if table.kind != "ranges":
            self._write(row)
        self._publish()

    def delete(self, row: Row) -> None:
        if row.identity not in self._rows:
            raise DriverError(f"table {self.table.name}: no such row")
        gone = self._rows.pop(row.identity)
        self._publish()
        if self.table.kind != "ranges":
            self._write(gone)
        if self.table.kind == "tuples" and not any(other.mask == row.mask for other in self._rows.values()):
            self._ids.append(self._tuples.pop(row.tuple_mask))
        if self._counts or self._meters:
            self._free.append(gone.slot)

    def clear(self) -> None:
        for row in list(self._rows.values()):
            self.delete(row)

    def count(self, row: Row) -> Count:
        if self._counts is None:
            raise DriverError(f"table {self.table.name}: no direct counter")
        if row.identity not in self._rows:
            raise DriverError(f"table {self.table.name}: no such row")
        return total(self._counts, self._rows[row.identity].slot)

    def meter(self, row: Row, cell: bytes) -> None:
        """Set the direct meter of a row."""
        if self._meters is None:
            raise DriverError(f"table {self.table.name}: no direct meter")
        if row.identity not in self._rows:
            raise DriverError(f"table {self.table.name}: no such row")
        self._meters.update(_U32.pack(self._rows[row.identity].slot), cell)

    def refers(self, data: int) -> bool:
        """Some row refers to this member or group of the action profile."""
        return any(row.data == (data,) for row in self._rows.values())

    # maps

    def _hash_key(self, row: Row) -> tuple[int, ...]:
        if self.table.kind == "exact":
            return row.exact
        return (self._tuples[row.tuple_mask], *row.exact, *row.value)

    def _write(self, row: Row) -> None:
        """Put the best row with this one's key into the hash; of equal masked keys only that can match."""
        assert self._map is not None
        key = self._hash_key(row)
        raw = struct.pack(f"={len(key)}Q", *key)
        if self.table.kind == "tuples":
            same = [other for other in self._rows.values() if other.mask == row.mask and self._hash_key(other) == key]
        else:
            same = [self._rows[row.identity]] if row.identity in self._rows else []
        if same:
            self._map.update(raw, packed(self.table, max(same, key=lambda other: other.priority)))
        else:
            self._map.delete(raw)

    def _publish(self) -> None:
        """Bring the control map up to date."""
        body = {"tuples": self._tuple_space, "ranges": self._ranges}.get(self.table.kind, lambda: (0, b""))
        tuples, raw = body()
        rows = len(self._rows) if self.table.kind == "ranges" else int(bool(self._rows))
        image = struct.pack("=2I", rows, tuples) + self._fallback + raw
        image = image.ljust(self.table.control_bytes, b"\0")
        if image != self._image:
            self._image = image
            self._changed(self.table, image)

    def _tuple_space(self) -> tuple[int, bytes]:
        highest: dict[tuple[int, ...], int] = {}
        for row in self._rows.values():
            highest[row.tuple_mask] = max(highest.get(row.tuple_mask, 0), row.priority)
        order = sorted(highest, key=lambda mask: -highest[mask])
        raw = b"".join(struct.pack(f"={len(mask)}Q2I", *mask, self._tuples[mask], highest[mask]) for mask in order)
        return len(order), raw

    def _ranges(self) -> tuple[int, bytes]:
        """Rows of one bucket together, the highest priority first; and the buckets in the hash."""
        order = sorted(self._rows.values(), key=lambda row: (row.exact, -row.priority))
        raw = b"".join(
            struct.pack(f"={2 * len(row.mask) + 2 * len(row.low)}Q", *row.mask, *row.value, *row.low, *row.high)
            + packed(self.table, row)
            for row in order
        )
        if self._map is not None:
            buckets: dict[tuple[int, ...], tuple[int, int]] = {}
            for at, row in enumerate(order):
                first, many = buckets.get(row.exact, (at, 0))
                buckets[row.exact] = first, many + 1
            packed_buckets = {struct.pack(f"={len(k)}Q", *k): struct.pack("=2I", *v) for k, v in buckets.items()}
            for key in [key for key in self._map.keys() if key not in packed_buckets]:  # noqa: SIM118
                self._map.delete(key)
            for key, value in packed_buckets.items():
                if self._map.lookup(key) != value:
                    self._map.update(key, value)
        return 0, raw


def meter_cell(where: str, rates: Rates | None) -> bytes:
    """struct meter of runtime/meter.h."""
    if rates is None:
        return struct.pack(METER, *[0] * 9)
    given = (rates.committed, rates.committed_burst, rates.peak, rates.peak_burst)
    if not all(0 <= rate < 1 << 40 for rate in given) or max(rates.committed_burst, rates.peak_burst) >= 1 << 32:
        raise DriverError(f"{where}: want rates below 2^40 and bursts below 2^32; got {rates}")
    if rates.peak < rates.committed:
        raise DriverError(f"{where}: want a peak rate of at least the committed one; got {rates}")
    full = (rates.committed_burst * _SCALE, rates.peak_burst * _SCALE)
    return struct.pack(METER, 0, 1, *given, 0, *full)


def total(counts: Map, index: int) -> Count:
    """A cell of a per-CPU counter, over all CPUs."""
    cells = [struct.unpack("=2Q", cell) for cell in counts.percpu(_U32.pack(index))]
    return Count(sum(packets for packets, _ in cells), sum(size for _, size in cells))
