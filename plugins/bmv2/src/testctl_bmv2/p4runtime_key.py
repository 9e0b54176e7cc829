# SPDX-License-Identifier: Apache-2.0
"""A row of a table as P4Runtime's TableEntry.

What the specification (1.4, sections 8.3 and 9.1) asks for: numbers are the shortest big-endian
bytes; a match of anything is left out; bits outside a mask are zero; a priority is above zero
in tables with ternary, range or optional keys and zero in others, so that the driver's becomes
one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Entry, Exact, Key, Lpm, Range, Ternary

from testctl_bmv2.p4info import Action, Field, Info, Table

_MAX_PRIORITY = 2**31 - 2


def number(value: int) -> bytes:
    """The shortest big-endian bytes, at least one."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def table_entry(info: Info, entry: Entry, into: Any, action: bool = True) -> Table:
    """Fill a p4.v1.TableEntry; without `action` only its key.  Returns the table.  Raises DriverError."""
    table = info.table(entry.table)
    into.table_id = table.id
    if unknown := set(entry.keys) - set(table.keys):
        raise DriverError(f"table {table.name}: want keys {', '.join(table.keys)}; got {', '.join(sorted(unknown))}")
    for name, field in table.keys.items():
        if name in entry.keys:
            _match(table, field, entry.keys[name], into)
        elif field.match == "exact":
            raise DriverError(f"table {table.name}: want the exact key {name}; got none")
    if not 0 <= entry.priority <= _MAX_PRIORITY:
        raise DriverError(f"table {table.name}: want a priority of 0 to {_MAX_PRIORITY}; got {entry.priority}")
    into.priority = entry.priority + 1 if table.ordered else 0
    if action:
        fill_action(table, info.action(table, entry.action), entry.params, into.action.action)
    return table


def fill_action(table: Table, action: Action, params: Mapping[str, int], into: Any) -> None:
    """Fill a p4.v1.Action.  Raises DriverError unless every parameter is there and fits."""
    who = f"table {table.name}, action {action.name}"
    if set(params) != set(action.params):
        wanted, got = (", ".join(sorted(names)) or "none" for names in (action.params, params))
        raise DriverError(f"{who}: want the parameters {wanted}; got {got}")
    into.action_id = action.id
    for name, field in action.params.items():
        into.params.add(param_id=field.id, value=number(_fits(f"{who}, {name}", params[name], field)))


def _fits(who: str, value: int, field: Field) -> int:
    if not 0 <= value <= field.most:
        raise DriverError(f"{who}: want a number of {field.bits} bits; got {value}")
    return value


def _match(table: Table, field: Field, key: Key, into: Any) -> None:
    """Add one p4.v1.FieldMatch, or none if the key matches anything."""
    who = f"table {table.name}, key {field.name}"
    match field.match, key:
        case "exact", Exact(value):
            into.match.add(field_id=field.id).exact.value = number(_fits(who, value, field))
        case "optional", Exact(value):
            into.match.add(field_id=field.id).optional.value = number(_fits(who, value, field))
        case "ternary", Exact(value):
            _match(table, field, Ternary(value, field.most), into)
        case "ternary", Ternary(value, mask):
            if kept := _fits(who, mask, field):
                ternary = into.match.add(field_id=field.id).ternary
                ternary.value, ternary.mask = number(_fits(who, value, field) & kept), number(kept)
        case "lpm", Exact(value):
            _match(table, field, Lpm(value, field.bits), into)
        case "lpm", Lpm(value, length):
            if not 0 <= length <= field.bits:
                raise DriverError(f"{who}: want a prefix of 0 to {field.bits} bits; got {length}")
            if length:
                mask = field.most ^ ((1 << (field.bits - length)) - 1)
                lpm = into.match.add(field_id=field.id).lpm
                lpm.value, lpm.prefix_len = number(_fits(who, value, field) & mask), length
        case "range", Exact(value):
            _match(table, field, Range(value, value), into)
        case "range", Range(low, high):
            if low > high:
                raise DriverError(f"{who}: want a range from low to high; got {low} to {high}")
            if (_fits(who, low, field), _fits(who, high, field)) != (0, field.most):
                ranged = into.match.add(field_id=field.id).range
                ranged.low, ranged.high = number(low), number(high)
        case _:
            raise DriverError(f"{who}: want a match that is {field.match}; got {key}")
