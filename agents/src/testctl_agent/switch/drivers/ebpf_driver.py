# SPDX-License-Identifier: Apache-2.0
"""The tables of a translated program, kept in its BPF maps: the Driver of the eBPF back end.

The driver is the only one that writes the maps, so it knows their content; what the packet path
writes (counters, registers) it reads.  layout.py has the layout of rows.  A change of one row is seen
by packets at once; several changes are not one.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Collection, Mapping, Sequence

from testctl_agent.bpf.libbpf import Object
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Count, Entry, Rates, find, instances_of
from testctl_agent.switch.drivers.ebpf_members import Members
from testctl_agent.switch.drivers.ebpf_table import Rows, meter_cell, total
from testctl_agent.switch.drivers.rows import Row, action_of, data_words, entry_of, keyless, row_of
from testctl_agent.switch.layout import NO_ACTION, Cells, Layout, Meter, Table, ValueSet

_ZERO = struct.pack("=I", 0)
_MAX_PORT = 510
_MAX_GROUP = 2**16 - 1
_MAX_SESSION = 2**15 - 1


class EbpfDriver:
    """driver.Driver over a loaded object; making one sets every table to what the program declares.

    absent: tables that it was loaded without; copies: that a group makes at the most, None: as many as the program can
    """

    def __init__(self, loaded: Object, layout: Layout, absent: Collection[str] = (), copies: int | None = None) -> None:
        self._loaded = loaded
        self._absent = frozenset(absent)
        self._most = layout.most_copies if copies is None else copies
        self._layout = layout
        self._image = bytearray(layout.control_bytes)
        self._registers = {register.name: register for register in layout.registers}
        self._counters = {counter.name: counter for counter in layout.counters}
        self._tables: dict[str, Rows] = {}
        self._meters = {meter.name: meter for meter in layout.meters}
        self._value_sets = {value_set.name: value_set for value_set in layout.value_sets}
        self._profiles = {profile.name: Members(profile, loaded) for profile in layout.profiles}
        for table in layout.tables:
            self._tables[table.name] = Rows(table, loaded, self._publish)
        for rows in self._tables.values():
            rows.set_default(self._default(rows.table))
            for preset in rows.table.entries:
                rows.insert(row_of(rows.table, entry_of(rows.table, preset)))

    def _publish(self, table: Table, image: bytes) -> None:
        self._image[table.control : table.control + len(image)] = image
        self._loaded.map(".data.control").update(_ZERO, bytes(self._image))

    def _default(self, table: Table) -> Row:
        if not table.default.action:
            return keyless(NO_ACTION)
        action = table.action(table.default.action)
        params = {param.name: value for param, value in zip(action.params, table.default.params, strict=True)}
        return keyless(action.number, data_words(f"table {table.name}", action, params))

    def _rows(self, name: str) -> Rows:
        return find(self._tables, name, "table")

    def _changeable(self, name: str) -> Rows:
        rows = self._rows(name)
        if rows.table.fixed:
            raise DriverError(f"table {rows.table.name}: its rows are constants of the program")
        return rows

    def insert(self, entry: Entry) -> None:
        rows = self._changeable(entry.table)
        if rows.table.name in self._absent:
            raise DriverError(f"table {rows.table.name}: the program was loaded without it, as its point needs no row")
        row = row_of(rows.table, entry)
        if rows.table.profile:
            row.data = (self._profiles[rows.table.profile].reference(entry.member, entry.group),)
        rows.insert(row)

    def delete(self, entry: Entry) -> None:
        rows = self._changeable(entry.table)
        rows.delete(row_of(rows.table, entry))

    def clear(self, table: str) -> None:
        self._changeable(table).clear()

    def set_default(self, table: str, action: str, params: Mapping[str, int]) -> None:
        rows = self._rows(table)
        declared = rows.table
        if declared.constant:
            raise DriverError(f"table {declared.name}: its default action is a constant of the program")
        if not action:
            rows.set_default(self._default(declared))
            return
        chosen = action_of(declared, action)
        data = data_words(f"table {declared.name}", chosen, params)
        rows.set_default(keyless(chosen.number, data))

    def multicast(self, group: int, ports: Sequence[int], instances: Sequence[int] = ()) -> None:
        if not 1 <= group <= _MAX_GROUP:
            raise DriverError(f"multicast group: want 1 to {_MAX_GROUP}; got {group}")
        self._copies("groups", f"multicast group {group}", group, ports, instances)

    def mirror(self, session: int, ports: Sequence[int], instances: Sequence[int] = ()) -> None:
        """The ports that a clone of this session leaves by; none deletes the session."""
        if not 0 <= session <= _MAX_SESSION:
            raise DriverError(f"clone session: want 0 to {_MAX_SESSION}; got {session}")
        if "mirrors" not in self._loaded.maps:
            raise DriverError(f"clone session {session}: the program does not clone")
        self._copies("mirrors", f"clone session {session}", session, ports, instances)

    def _copies(self, where: str, who: str, number: int, ports: Sequence[int], instances: Sequence[int]) -> None:
        most = self._layout.most_copies
        if len(ports) > self._most:
            raise DriverError(f"{who}: want at most {self._most} ports; got {len(ports)}")
        for port in ports:
            if not self._layout.first_port <= port <= _MAX_PORT:
                raise DriverError(f"{who}: want ports from {self._layout.first_port} to {_MAX_PORT}; got {port}")
        groups, key = self._loaded.map(where), struct.pack("=I", number)
        if not ports:
            if not groups.delete(key):
                raise DriverError(f"{who}: there is none")
            return
        given, spare = instances_of(who, ports, instances), [0] * (most - len(ports))
        groups.update(key, struct.pack(f"=I{2 * most}H", len(ports), *ports, *spare, *given, *spare))

    def _index(self, cells: Cells | Meter, index: int) -> bytes:
        if not 0 <= index < cells.size:
            raise DriverError(f"{cells.name}: want an index from 0 to {cells.size - 1}; got {index}")
        return struct.pack("=I", index)

    # action profiles and selectors

    def member(self, profile: str, number: int, action: str, params: Mapping[str, int]) -> None:
        """Add or change a member; "" as its action removes it, which is refused as long as something refers to it."""
        members, tables = self._of_profile(profile)
        if action:
            members.set(number, action_of(tables[0].table, action), params)
        else:
            members.remove(number, [table.refers for table in tables])

    def group(self, profile: str, number: int, numbers: Sequence[int]) -> None:
        """Set the members of a selector's group, each as often as its weight says; none removes the group."""
        members, tables = self._of_profile(profile)
        if numbers:
            members.set_group(number, numbers)
        else:
            members.remove_group(number, [table.refers for table in tables])

    def _of_profile(self, name: str) -> tuple[Members, list[Rows]]:
        members = find(self._profiles, name, "action profile")
        return members, [rows for rows in self._tables.values() if rows.table.profile == members.profile.name]

    # parser value sets

    def value_set(self, name: str, members: Sequence[Sequence[int]]) -> None:
        """Let a parser value set have these members and no others; each has a number for every field of the set."""
        declared = find(self._value_sets, name, "value set")
        wanted = {self._packed(declared, member) for member in members}
        if len(wanted) > declared.size:
            raise DriverError(f"value set {declared.name}: want at most {declared.size} members; got {len(wanted)}")
        held = self._loaded.map(declared.map)
        for key in set(held.keys()) - wanted:
            held.delete(key)
        for key in wanted:
            held.update(key, struct.pack("=I", 1))

    def _packed(self, values: ValueSet, fields: Sequence[int]) -> bytes:
        if len(fields) != len(values.widths) or any(
            not 0 <= value < 1 << width for value, width in zip(fields, values.widths, strict=False)
        ):
            raise DriverError(f"value set {values.name}: want fields of {list(values.widths)} bits; got {list(fields)}")
        whole = 0
        for value, width in zip(fields, values.widths, strict=True):
            whole = whole << width | value
        return struct.pack("=2Q", whole >> 64, whole & (1 << 64) - 1)

    # meters

    def meter(self, name: str, index: int, rates: Rates | None) -> None:
        """Set a cell of an indirect meter, its buckets full; None: it gives green to all."""
        meter = find(self._meters, name, "meter")
        self._loaded.map(meter.map).update(self._index(meter, index), meter_cell(f"meter {meter.name}", rates))

    def direct_meter(self, entry: Entry, rates: Rates | None) -> None:
        """Set the meter of a row."""
        rows = self._rows(entry.table)
        rows.meter(row_of(rows.table, entry), meter_cell(f"meter {rows.table.meter}", rates))

    # counters and registers

    def counter(self, name: str, index: int) -> Count:
        cells = find(self._counters, name, "counter")
        self._index(cells, index)
        return total(self._loaded.map(cells.map), index)

    def direct(self, entry: Entry) -> Count:
        rows = self._rows(entry.table)
        return rows.count(row_of(rows.table, entry))

    def register(self, name: str) -> list[int]:
        cells = find(self._registers, name, "register")
        held = self._loaded.map(cells.map)
        return [int.from_bytes(held.lookup(struct.pack("=I", at)) or b"\0", sys.byteorder) for at in range(cells.size)]

    def write_register(self, name: str, index: int, value: int) -> None:
        cells = find(self._registers, name, "register")
        if not 0 <= value < 1 << cells.width:
            raise DriverError(f"register {cells.name}: want at most {cells.width} bits; got {value}")
        held = self._loaded.map(cells.map)
        held.update(self._index(cells, index), value.to_bytes(held.value_bytes, sys.byteorder))
