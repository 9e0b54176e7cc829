# SPDX-License-Identifier: Apache-2.0
"""What a point needs of the testbed program: the rest is not loaded, so that the verifier need not look at it.

The rows of the point's settings are made once for a driver that only records their tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import TestctlError
from testctl_agent.spec.types import Value
from testctl_agent.switch.backend import UNSET
from testctl_agent.switch.drivers.driver import Count, Entry, find
from testctl_agent.switch.ebpf_links import PARAMETERS, Link
from testctl_agent.switch.layout import MOST_COPIES, NEEDS_LINKS, NEEDS_PARKS, NEEDS_TABLE, Layout
from testctl_agent.switch.testbed_tables import TestbedTables

Settings = Mapping[tuple[str, str], Value]
"""(device of a port or "", parameter) → value."""


@dataclass(frozen=True)
class Needs:
    """tables: by the names of Entry; links: some change; copies: that a group makes at the most."""

    tables: frozenset[str]
    links: bool
    copies: int

    def constants(self, layout: Layout) -> bytes:
        """The bytes of layout.NEEDED."""
        named = {table.name: table for table in layout.tables}
        wanted = {find(named, name, "table").name for name in self.tables}
        constants = bytearray(b"\1" * layout.needed_bytes)
        constants[NEEDS_LINKS], constants[NEEDS_PARKS] = self.links, "swap" in self.tables
        constants[MOST_COPIES] = min(max(self.copies, 1), layout.most_copies)
        for table in layout.tables:
            constants[NEEDS_TABLE + table.index] = table.name in wanted or bool(table.entries)
        return bytes(constants)


class _RecordingDriver:
    """driver.Driver without a program."""

    def __init__(self) -> None:
        self.tables: set[str] = set()
        self.copies = 0

    def insert(self, entry: Entry) -> None:
        self.tables.add(entry.table)

    def multicast(self, group: int, ports: Sequence[int], instances: Sequence[int] = ()) -> None:
        self.copies = max(self.copies, len(ports))

    def delete(self, entry: Entry) -> None: ...

    def clear(self, table: str) -> None: ...

    def set_default(self, table: str, action: str, params: Mapping[str, int]) -> None: ...

    def counter(self, name: str, index: int) -> Count:
        return Count(0, 0)

    def direct(self, entry: Entry) -> Count:
        return Count(0, 0)

    def register(self, name: str) -> list[int]:
        return []

    def write_register(self, name: str, index: int, value: int) -> None: ...


def needs(ports: Mapping[str, int], forwarding: Stations, most_copies: int, settings: Settings) -> Needs | None:
    """Of a switch with these devices (→ P4 port); None: all, as a value will be refused when it is set."""
    driver = _RecordingDriver()
    try:
        tables = TestbedTables(driver, ports, forwarding, most_copies)
        for what in ("flows", "fate", "ecmp_seed"):  # a fate is one of a flow that is known
            tables.apply(what, settings.get(("", what), UNSET[what]))
        links = False
        for port in ports:
            depth = settings.get((port, "ecn_threshold"), UNSET["ecn_threshold"])
            if depth != UNSET["ecn_threshold"]:
                tables.set_threshold(port, int(depth))
            link = Link(**{what: settings[port, what] for what in PARAMETERS if (port, what) in settings})
            links = links or link.changes
    except (TestctlError, ValueError):
        return None
    return Needs(frozenset(driver.tables), links, driver.copies)


def absent(layout: Layout, constants: bytes) -> Collection[str]:
    """The tables that a program with these constants lacks."""
    return [table.name for table in layout.tables if not constants[NEEDS_TABLE + table.index]]
