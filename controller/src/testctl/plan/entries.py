# SPDX-License-Identifier: Apache-2.0
"""The rows that a plan gives to a P4 program, from the files that people have, checked against the program.

Files: the runtime JSON of p4lang's tutorials (table_entries, multicast_group_entries, clone_session_entries), or the
commands of BMv2's simple_switch_CLI.  Where a number is wanted a host's or a neighbour's name may stand: in a field of
48 bits for its MAC address, of 32 and 128 bits for its IP address, of 9 bits for the port that leads there.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from testctl_agent.spec import p4_program
from testctl_agent.spec.errors import DriverError
from testctl_agent.spec.p4_program import Replicated, Row, Rows
from testctl_agent.spec.untrusted import misfit
from testctl_agent.switch.drivers.driver import find
from testctl_agent.switch.drivers.rows import action_of, data_words, row_of
from testctl_agent.switch.layout import Key, Layout, Table
from testctl_agent.switch.own_program import as_entry

from testctl.core.topology import Topology

_MAC_BITS, _IPV4_BITS, _IPV6_BITS, _PORT_BITS = 48, 32, 128, 9
_MAC = re.compile(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}")
_DEFAULT_PRIORITY = 1
_SHAPE = {
    "file?": str,
    "cli?": [[int, [str]]],
    "runtime?": {
        "table_entries?": [object],
        "multicast_group_entries?": [object],
        "clone_session_entries?": [object],
    },
}
_SILENT = ("reset_state", "table_clear")


class _Names:
    """What the names of a topology stand for at a switch."""

    def __init__(self, topology: Topology, switch: str) -> None:
        self.topology = topology
        self.macs = {host: int(address.replace(":", ""), 16) for host, address in topology.all_macs.items()}
        self.ports = {name: number for number, name in enumerate(topology.neighbours[switch], 1)}

    def number(self, raw: object, bits: int, where: str) -> int:
        """A number, an address or a name.  Raises ValueError."""
        if isinstance(raw, int) and not isinstance(raw, bool):
            return raw
        text = str(raw)
        if text in self.topology.entities:
            known = {
                _MAC_BITS: self.macs.get(text),
                _IPV4_BITS: int(ipaddress.ip_address(self.topology.hosts[text])) if text in self.macs else None,
                _IPV6_BITS: int(ipaddress.ip_address(self.topology.address(text, 6))) if text in self.macs else None,
                _PORT_BITS: self.ports.get(text),
            }
            if (found := known.get(bits)) is None:
                raise ValueError(f"{where}: want a number of {bits} bits; got {text}, which stands for none there")
            return found
        if _MAC.fullmatch(text):
            return int("".join(f"{int(part, 16):02x}" for part in text.split(":")), 16)
        try:
            return (
                int(text, 0)
                if re.fullmatch(r"0x[0-9a-fA-F]+|0b[01]+|[0-9]+", text)
                else int(ipaddress.ip_address(text))
            )
        except ValueError:
            raise ValueError(f"{where}: want a number, an address or a name of the topology; got {text!r}") from None


def rows_of(value: str, layout: Layout, topology: Topology, switch: str) -> Rows:
    """The rows of a value of `entries`.  Raises ValueError "FILE, …: want …; got …"."""
    raw = p4_program.parse_entries(value)
    file = str(raw.get("file", "")) if isinstance(raw, dict) else ""
    if why := misfit(raw, _SHAPE):
        raise ValueError(f"{file}, {why}")
    names, tables = _Names(topology, switch), {table.name: table for table in layout.tables}
    try:
        read = _Reader(names, layout, tables)
        for number, line in raw.get("cli", ()):
            read.command(f"line {number}", line)
        if "runtime" in raw:
            read.runtime(raw["runtime"])
    except (ValueError, DriverError) as error:
        raise ValueError(f"{file}, {error}") from error
    return read.rows


class _Reader:
    def __init__(self, names: _Names, layout: Layout, tables: Mapping[str, Table]) -> None:
        self.names, self.layout, self.tables = names, layout, tables
        self.rows = Rows()
        self._nodes: dict[int, list[tuple[int, int]]] = {}
        self._seen: set[object] = set()

    # both forms

    def _table(self, where: str, name: str) -> Table:
        try:
            return find(self.tables, name, "table")
        except DriverError as error:
            raise ValueError(f"{where}: {error}") from error

    def _params(
        self, where: str, table: Table, action: str, given: Mapping[str, object] | Sequence[object]
    ) -> dict[str, int]:
        chosen = action_of(table, action)
        if not isinstance(given, Mapping):
            if len(given) != len(chosen.params):
                wanted = ", ".join(param.name for param in chosen.params) or "none"
                raise ValueError(f"{where}: {action}: want its parameters, {wanted}; got {len(given)}")
            given = {param.name: value for param, value in zip(chosen.params, given, strict=True)}
        bits = {param.name: param.width for param in chosen.params}
        return {name: self.names.number(raw, bits.get(name, 0), f"{where}: {name}") for name, raw in given.items()}

    def _add(self, where: str, row: Row) -> None:
        table = self._table(where, row.table)
        try:
            if row.keys is None:
                data_words(f"table {table.name}", action_of(table, row.action), row.params)
            else:
                packed = row_of(table, as_entry(row))
                if (identity := (table.name, packed.identity)) in self._seen:
                    raise ValueError(f"table {table.name}: want a row once; it is there")
                self._seen.add(identity)
            if table.fixed if row.keys is not None else table.constant:
                raise ValueError(f"table {table.name}: want none; the program itself has its rows")
        except (DriverError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error
        if sum(other.table == row.table and other.keys is not None for other in self.rows.rows) >= table.capacity > 0:
            raise ValueError(f"{where}: table {table.name}: want at most {table.capacity} rows")
        self.rows = replace(self.rows, rows=(*self.rows.rows, row))

    def _members(self, where: str, replicas: Sequence[Any]) -> tuple[tuple[int, int], ...]:
        return tuple(
            (
                self.names.number(replica["egress_port"], _PORT_BITS, f"{where}: egress_port"),
                int(replica.get("instance", replica.get("replica_id", 0))),
            )
            for replica in replicas
        )

    # the tutorials' JSON

    def runtime(self, raw: Mapping[str, Any]) -> None:
        for at, entry in enumerate(raw.get("table_entries", ()), 1):
            where = f"table_entries, {at}"
            try:
                self._runtime_row(where, entry)
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"{where}: want table, match, action_name and action_params; got {str(entry)[:60]}"
                ) from error
        groups = self._replicated(raw, "multicast_group_entries", "multicast_group_id")
        mirrors = self._replicated(raw, "clone_session_entries", "clone_session_id")
        self.rows = replace(self.rows, groups=groups, mirrors=mirrors)

    def _replicated(self, raw: Mapping[str, Any], what: str, number: str) -> Replicated:
        made = []
        for at, entry in enumerate(raw.get(what, ()), 1):
            try:
                made.append((int(entry[number]), self._members(f"{what}, {at}", entry["replicas"])))
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{what}, {at}: want {number} and replicas; got {str(entry)[:60]}") from error
        return tuple(made)

    def _runtime_row(self, where: str, entry: Mapping[str, Any]) -> None:
        table = self._table(where, str(entry["table"]))
        action = str(entry["action_name"])
        params = self._params(where, table, action, entry.get("action_params", {}))
        if entry.get("default_action"):
            self._add(where, Row(table.name, None, action, params))
            return
        keys = {key.name: key for key in table.keys}
        matches = {}
        for name, given in entry.get("match", {}).items():
            key = find(keys, str(name), f"table {table.name}: field")
            matches[key.name] = self._match(f"{where}: {name}", key, given)
        self._add(where, Row(table.name, matches, action, params, int(entry.get("priority", self._priority(table)))))

    def _priority(self, table: Table) -> int:
        return _DEFAULT_PRIORITY if any(key.match in ("ternary", "range") for key in table.keys) else 0

    def _match(self, where: str, key: Key, given: object) -> list[Any]:
        """A key of the JSON: a value, or [value, length, mask or greatest value]."""
        kind = "exact" if key.match == "valid" else key.match
        both = given if isinstance(given, list) else [given]
        if len(both) == 1 and kind != "exact":
            both = [both[0], {"lpm": key.width, "ternary": 2**key.width - 1, "range": both[0]}[kind]]
        if len(both) != (1 if kind == "exact" else 2):
            raise ValueError(f"{where}: want {'a value' if kind == 'exact' else 'two numbers'} ({kind}); got {given}")
        return [kind, *(self.names.number(raw, key.width, where) for raw in both)]

    # simple_switch_CLI

    def command(self, where: str, line: Sequence[str]) -> None:
        """A line, split at its spaces."""
        try:
            match line:
                case ["table_set_default", name, action, *params]:
                    table = self._table(where, name)
                    self._add(where, Row(table.name, None, action, self._params(where, table, action, params)))
                case ["table_add", name, action, *rest]:
                    self._cli_row(where, self._table(where, name), action, rest)
                case ["mc_mgrp_create", number]:
                    self.rows = replace(self.rows, groups=(*self.rows.groups, (int(number, 0), ())))
                case ["mc_node_create", instance, *ports]:
                    made = [(self.names.number(port, _PORT_BITS, where), int(instance, 0)) for port in ports]
                    self._nodes[len(self._nodes)] = made
                case ["mc_node_associate", number, node]:
                    added = self._nodes.get(int(node, 0))
                    groups = dict(self.rows.groups)
                    if added is None or int(number, 0) not in groups:
                        raise ValueError("want a group and a node that were made before")
                    groups[int(number, 0)] = (*groups[int(number, 0)], *added)
                    self.rows = replace(self.rows, groups=tuple(groups.items()))
                case ["mirroring_add", session, port]:
                    leads = ((self.names.number(port, _PORT_BITS, where), 0),)
                    self.rows = replace(self.rows, mirrors=(*self.rows.mirrors, (int(session, 0), leads)))
                case ["register_write", name, at, number]:
                    cells = find({found.name: found for found in self.layout.registers}, name, "register")
                    written = (cells.name, int(at, 0), self.names.number(number, cells.width, where))
                    if not (0 <= written[1] < cells.size and 0 <= written[2] < 1 << cells.width):
                        raise ValueError(
                            f"register {cells.name}: want a cell below {cells.size} and {cells.width} bits"
                        )
                    self.rows = replace(self.rows, registers=(*self.rows.registers, written))
                case ["port_add", _, number]:
                    if int(number, 0) not in self.names.ports.values():
                        raise ValueError(f"want a port of the topology, 1 to {len(self.names.ports)}; got {number}")
                case [("set_queue_rate" | "set_queue_depth") as name, *_]:
                    raise ValueError(f"want no {name}: a port's rate and buffer are the plan's [switch:PORT, rate, …]")
                case [name, *_] if name not in _SILENT:
                    raise ValueError(
                        "want table_add, table_set_default, mc_mgrp_create, mc_node_create, mc_node_associate, "
                        f"mirroring_add or register_write; got {name}"
                    )
        except (DriverError, ValueError) as error:
            raise ValueError(str(error) if str(error).startswith(where) else f"{where}: {error}") from error

    def _cli_row(self, where: str, table: Table, action: str, rest: Sequence[str]) -> None:
        if "=>" not in rest:
            raise ValueError("want table_add TABLE ACTION KEYS => PARAMETERS; got no =>")
        cut = list(rest).index("=>")
        given, params = rest[:cut], list(rest[cut + 1 :])
        priority = self._priority(table)
        if priority and len(params) == len(action_of(table, action).params) + 1:
            # BMv2's lowest number wins
            priority = 2**31 - 1 - int(params.pop(), 0)
        if len(given) != len(table.keys):
            raise ValueError(f"table {table.name}: want {len(table.keys)} keys; got {len(given)}")
        matches = {}
        for key, text in zip(table.keys, given, strict=True):
            marks = {"lpm": "/", "ternary": "&&&", "range": "->"}
            both: list[Any] = text.split(marks[key.match]) if key.match in marks else [text]
            matches[key.name] = self._match(f"{where}: {key.name}", key, both)
        self._add(where, Row(table.name, matches, action, self._params(where, table, action, params), priority))
