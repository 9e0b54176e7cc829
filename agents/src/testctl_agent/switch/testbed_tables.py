# SPDX-License-Identifier: Apache-2.0
"""The testbed program's tables as a switch's parameters: flows, fates, ECN thresholds, forwarding.

Works through any driver.  A value is turned into rows as a whole before a table is touched, and where the
target refuses one of them, the tables get their former rows again: a refused value changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from testctl_agent.spec import fate, flows
from testctl_agent.spec.ecmp import Stations
from testctl_agent.spec.errors import ApplyError, DriverError, TestbedError
from testctl_agent.spec.fate import Action
from testctl_agent.spec.types import Value
from testctl_agent.switch import testbed_program
from testctl_agent.switch.drivers.driver import Driver, Entry
from testctl_agent.system.own_files import agents_file

_BUILD = "p4/build"
_JSON, _P4INFO = "testbed.json", "testbed.p4info.txtpb"


def built() -> tuple[Path, Path]:
    """The testbed program's BMv2 JSON and its P4Info, as compiled.  Raises TestbedError."""
    home = agents_file(_BUILD) or Path(_BUILD)
    files = (home / _JSON, home / _P4INFO)
    if absent := [path.name for path in files if not path.exists()]:
        raise TestbedError(f"{home}: want {', '.join(absent)} (make p4); got none")
    return files


class TestbedTables:
    """The tables of one running program.

    ports        device → P4 port
    stations     MAC → the devices that lead there
    most_copies  ports that a group may have (0: any number); with more, group addresses are discarded
    unable       actions that the target can't do
    Every call raises ApplyError: who, wanted, got.
    """

    __test__ = False  # not a test, whatever its name says to pytest

    def __init__(
        self,
        driver: Driver,
        ports: Mapping[str, int],
        stations: Stations,
        most_copies: int = 0,
        unable: Collection[Action] = (),
    ) -> None:
        self._driver = driver
        self._ports = ports
        self._unable = frozenset(unable)
        able = [table for action, table in testbed_program.TABLES_OF.items() if action not in self._unable]
        self._fate_tables = (*testbed_program.FATE_TABLES, *(name for names in able for name in names))
        self._rows: list[Entry] = []
        self._known: tuple[flows.Connection, ...] = ()
        self._fates: tuple[fate.Fate, ...] = ()
        self._depths: dict[int, int] = {}
        self._stations = stations
        self._seed = 0
        groups = {} if most_copies and len(ports) - 1 > most_copies else testbed_program.groups(ports, stations)
        self._floods = bool(groups)
        rows = testbed_program.forwarding(ports, stations, flood=self._floods)
        try:
            for group, members in groups.items():
                driver.multicast(group, members)
            for port in ports.values() if "duplicate" not in self._unable else ():
                driver.multicast(testbed_program.TWICE + port, (port, port), (0, 1))
        except DriverError as error:
            raise ApplyError(f"switch, forwarding: {error}") from error
        self._replace("forwarding", testbed_program.FORWARDING_TABLES, rows)

    def set_ecmp_seed(self, seed: int) -> None:
        """Of the draw by which connections are spread over equal ways."""
        rows = testbed_program.forwarding(self._ports, self._stations, flood=self._floods, seed=seed)
        self._replace("ecmp_seed", testbed_program.FORWARDING_TABLES, rows)
        self._seed = seed

    def read(self, parameter: str) -> Value:
        """One of SWITCH_PARAMETERS."""
        values: dict[str, Value] = {"flows": self.flows(), "fate": self.fates(), "ecmp_seed": self._seed}
        return values[parameter]

    def apply(self, parameter: str, value: Value) -> None:
        """Set one of SWITCH_PARAMETERS."""
        if parameter == "flows":
            self.set_flows(str(value))
        elif parameter == "fate":
            self.set_fates(str(value))
        else:
            self.set_ecmp_seed(int(value))

    def flows(self) -> str:
        """The connections known now, as their canonical text."""
        return flows.show(self._known)

    @property
    def holding(self) -> bool:
        """Whether a packet may be sent later than its port would send it."""
        return any(rule.action in fate.HOLDING for rule in self._fates)

    def fates(self) -> str:
        return fate.show(self._fates)

    def fate_rows(self) -> tuple[Entry, ...]:
        """The rows of the fates set; rows of the table `fate` count the packets they match."""
        return testbed_program.fates(self._fates, self._known)

    def set_flows(self, text: str) -> None:
        """Give ids to these connections; their counts begin anew.  Fates of their flows stay set."""
        try:
            known = flows.parse(text)
        except ValueError as error:
            raise ApplyError(f"switch, flows: {error}") from error
        kept = [rule for rule in self._fates if any(rule.flow == connection.flow for connection in known)]
        rows = (*testbed_program.connections(known), *testbed_program.fates(kept, known))
        tables = (*self._fate_tables, *testbed_program.FLOW_TABLES)
        self._replace("flows", tables, rows, testbed_program.cells(known))
        self._known, self._fates = known, tuple(kept)

    def set_fates(self, text: str) -> None:
        """Give these fates to the packets of the flows known now."""
        try:
            wanted = fate.parse(text)
        except ValueError as error:
            raise ApplyError(f"switch, fate: {error}") from error
        if cannot := [rule for rule in wanted if rule.action in self._unable]:
            names = ", ".join(dict.fromkeys(rule.action for rule in cannot))
            raise ApplyError(f"switch, fate: want no {names}, which this target can't; got {fate.show(cannot)}")
        self._replace("fate", self._fate_tables, testbed_program.fates(wanted, self._known))
        self._fates = wanted

    def set_threshold(self, device: str, depth: int | None) -> None:
        """Mark from this depth on, in the unit of the target's enq_qdepth; None: never."""
        depths = {port: kept for port, kept in self._depths.items() if port != self._ports[device]}
        if depth is not None:
            depths[self._ports[device]] = depth
        self._replace("ecn_threshold", ("ecn",), testbed_program.thresholds(depths))
        self._depths = depths

    def _replace(
        self, who: str, tables: Sequence[str], rows: Sequence[Entry], cells: Iterable[tuple[str, int]] = ()
    ) -> None:
        """Give tables these rows and set cells of registers to 0; where a row is refused, the former rows again."""
        others = [row for row in self._rows if row.table not in tables]
        try:
            self._fill(tables, rows, cells)
        except DriverError as error:
            try:
                self._fill(tables, [row for row in self._rows if row.table in tables], ())
            except DriverError as failure:
                raise ApplyError(f"switch, {who}: {error}; and then: {failure}") from error
            raise ApplyError(f"switch, {who}: {error}") from error
        self._rows = [*others, *rows]

    def _fill(self, tables: Sequence[str], rows: Sequence[Entry], cells: Iterable[tuple[str, int]]) -> None:
        for table in tables:
            self._driver.clear(table)
        for register, cell in cells:
            self._driver.write_register(register, cell, 0)
        for row in rows:
            self._driver.insert(row)
