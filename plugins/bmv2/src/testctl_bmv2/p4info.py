# SPDX-License-Identifier: Apache-2.0
"""P4Info as plain data: what a program's tables, actions, counters and registers are called.

Source: the P4Runtime specification 1.4, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from google.protobuf import json_format, text_format
from testctl_agent.spec.errors import ProgramError
from testctl_agent.switch.drivers.driver import find

from testctl_bmv2.schema import message

Match = Literal["exact", "ternary", "lpm", "range", "optional"]
_MATCHES: dict[int, Match] = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}
"""MatchField.MatchType."""


@dataclass(frozen=True)
class Field:
    """A key of a table (`match` is set) or a parameter of an action; `bits` is its width."""

    id: int
    name: str
    bits: int
    match: Match = "exact"

    @property
    def most(self) -> int:
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Action:
    id: int
    name: str
    params: Mapping[str, Field]


@dataclass(frozen=True)
class Table:
    """actions that a row may have; defaults that packets matching no row may have; direct: its counter's id or 0;
    shared: its rows refer to members of an action profile."""

    id: int
    name: str
    keys: Mapping[str, Field]
    actions: Sequence[Action]
    defaults: Sequence[Action]
    size: int
    direct: int
    constant: bool
    shared: bool = False

    @property
    def ordered(self) -> bool:
        """Whether rows have a priority."""
        return any(key.match in ("ternary", "range", "optional") for key in self.keys.values())


@dataclass(frozen=True)
class Cells:
    """An indirect counter or a register; `bits` is a register's width."""

    id: int
    name: str
    size: int
    bits: int = 0


@dataclass(frozen=True)
class Info:
    """A program's P4Info; `message` is what P4Runtime is given."""

    message: Any
    tables: Mapping[str, Table]
    actions: Mapping[str, Action]
    counters: Mapping[str, Cells]
    registers: Mapping[str, Cells]

    def table(self, name: str) -> Table:
        return find(self.tables, name, "table")

    def action(self, table: Table, name: str, default: bool = False) -> Action:
        """The action of a table's rows, or of its default.  Raises DriverError."""
        among = table.defaults if default else table.actions
        return find({one.name: one for one in among}, name, f"table {table.name}: action")

    def counter(self, name: str) -> Cells:
        return find(self.counters, name, "counter")

    def register(self, name: str) -> Cells:
        return find(self.registers, name, "register")


def read(path: Path) -> Info:
    """A file as p4c writes it: text or, with the suffix .json, JSON.  Raises ProgramError."""
    info = message("p4.config.v1.P4Info")()
    try:
        parse = json_format.Parse if path.suffix == ".json" else text_format.Parse
        parse(path.read_text(encoding="utf-8"), info)
    except OSError as error:
        raise ProgramError(f"{path}: can't be read: {error.strerror}") from error
    except (text_format.ParseError, json_format.ParseError) as error:
        raise ProgramError(f"{path}: not P4Info: {error}") from error
    return digest(info)


def digest(info: Any) -> Info:
    """A message p4.config.v1.P4Info as plain data."""
    actions = {one.preamble.id: _action(one) for one in info.actions}
    direct = {one.direct_table_id: one.preamble.id for one in info.direct_counters}
    tables = [_table(one, actions, direct.get(one.preamble.id, 0)) for one in info.tables]
    counters = [Cells(one.preamble.id, one.preamble.name, one.size) for one in info.counters]
    registers = [
        Cells(one.preamble.id, one.preamble.name, one.size, one.type_spec.bitstring.bit.bitwidth)
        for one in info.registers
    ]
    return Info(
        info,
        {one.name: one for one in tables},
        {one.name: one for one in actions.values()},
        {one.name: one for one in counters},
        {one.name: one for one in registers},
    )


def _action(one: Any) -> Action:
    params = {param.name: Field(param.id, param.name, param.bitwidth) for param in one.params}
    return Action(one.preamble.id, one.preamble.name, params)


def _table(one: Any, actions: Mapping[int, Action], direct: int) -> Table:
    name = one.preamble.name
    keys = {}
    for key in one.match_fields:
        if key.match_type not in _MATCHES:
            raise ProgramError(f"table {name}, key {key.name}: a kind of match (P4Info {key.match_type}) unknown here")
        keys[key.name] = Field(key.id, key.name, key.bitwidth, _MATCHES[key.match_type])
    # ActionRef.Scope: 0 both, 1 rows only, 2 default only
    rows = [actions[ref.id] for ref in one.action_refs if ref.scope != 2]
    defaults = [actions[ref.id] for ref in one.action_refs if ref.scope != 1]
    fixed = bool(one.const_default_action_id)
    shared, constant = bool(one.implementation_id), one.is_const_table
    return Table(one.preamble.id, name, keys, rows, [] if fixed else defaults, one.size, direct, constant, shared)
