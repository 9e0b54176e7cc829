# SPDX-License-Identifier: Apache-2.0
"""A switch that runs the user's P4 program: behind the testbed's, which does what a plan wants of chosen packets.

The testbed's program is in front: its table `forward` sends everything to NEXT, which stands for the program behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from testctl_agent.spec import p4_program
from testctl_agent.spec.errors import ApplyError, DriverError
from testctl_agent.spec.p4_program import Row, Rows
from testctl_agent.switch.drivers.driver import Entry, Exact, Key, Lpm, Range, Ternary

if TYPE_CHECKING:
    from testctl_agent.switch.drivers.ebpf_driver import EbpfDriver

NEXT = 510
"""The front's only port; no switch has a port of this number."""
PORTS = {"": NEXT}
_KEYS = {"exact": Exact, "lpm": Lpm, "ternary": Ternary, "range": Range}


def fill(driver: EbpfDriver, value: str) -> None:
    """Give the user's program the rows of a value of `entries`.  Raises ApplyError: who, wanted, got."""
    if value == p4_program.NONE:
        return
    try:
        rows = Rows.of(p4_program.parse_entries(value))
        for row in rows.rows:
            if row.keys is None:
                driver.set_default(row.table, row.action, row.params)
            else:
                driver.insert(as_entry(row))
        for group, members in rows.groups:
            driver.multicast(group, [port for port, _ in members], [instance for _, instance in members])
        for session, members in rows.mirrors:
            driver.mirror(session, [port for port, _ in members], [instance for _, instance in members])
        for name, at, number in rows.registers:
            driver.write_register(name, at, number)
    except (DriverError, ValueError) as error:
        raise ApplyError(f"switch, entries: {error}") from error


def as_entry(row: Row) -> Entry:
    keys: dict[str, Key] = {name: _KEYS[kind](*numbers) for name, (kind, *numbers) in (row.keys or {}).items()}
    return Entry(row.table, keys, row.action, row.params, row.priority)
