# SPDX-License-Identifier: Apache-2.0
"""A driver's Entry as the words of layout.py, with every width checked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from testctl_agent.spec.errors import DriverError
from testctl_agent.switch import layout
from testctl_agent.switch.drivers.driver import Entry, Exact, Key, Lpm, Range, Ternary, find
from testctl_agent.switch.layout import Action, Preset, Table

MAX_PRIORITY = 2**31 - 1


@dataclass
class Row:
    """An entry as 64-bit words; two are the same row if all but `data` and `slot` are equal."""

    exact: tuple[int, ...]
    mask: tuple[int, ...]
    value: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    priority: int
    action: int
    data: tuple[int, ...]
    slot: int = 0

    @property
    def identity(self) -> tuple[object, ...]:
        return self.exact, self.mask, self.value, self.low, self.high, self.priority

    @property
    def tuple_mask(self) -> tuple[int, ...]:
        """The mask of the row's tuple: all bits of the exact words, then the masked words' own."""
        return (*((1 << 64) - 1 for _ in self.exact), *self.mask)


def keyless(action: int, data: tuple[int, ...] = ()) -> Row:
    """A row without keys: a table's default, or a member of an action profile."""
    return Row((), (), (), (), (), 0, action, data)


def _spread(key: layout.Key, value: int, target: list[int]) -> None:
    """Put a field's bits where they belong."""
    if key.width > 64:
        target[key.word] |= value >> 64
        target[key.word + 1] |= value & (1 << 64) - 1
    else:
        target[key.word] |= value << key.shift


def _fits(where: str, value: int, width: int) -> int:
    if not 0 <= value < 1 << width:
        raise DriverError(f"{where}: want a number of {width} bits; got {value:#x}")
    return value


def _masked(where: str, key: layout.Key, given: Key | None) -> tuple[int, int]:
    """Value and mask of an exact, ternary or LPM match."""
    every = (1 << key.width) - 1
    if given is None:
        return 0, 0
    if isinstance(given, Exact):
        return _fits(where, given.value, key.width), every
    if isinstance(given, Lpm):
        if not 0 <= given.length <= key.width:
            raise DriverError(f"{where}: want a prefix length from 0 to {key.width}; got {given.length}")
        mask = every >> (key.width - given.length) << (key.width - given.length)
        return _fits(where, given.value, key.width) & mask, mask
    if isinstance(given, Ternary):
        return _fits(where, given.value, key.width) & given.mask, _fits(where, given.mask, key.width)
    raise DriverError(f"{where}: want {key.match}; got a range")


def _range(where: str, key: layout.Key, given: Key | None) -> tuple[int, int]:
    if given is None:
        return 0, (1 << key.width) - 1
    if isinstance(given, Exact):
        return given.value, _fits(where, given.value, key.width)
    if not isinstance(given, Range):
        raise DriverError(f"{where}: want range; got {type(given).__name__.lower()}")
    _fits(where, given.low, key.width)
    _fits(where, given.high, key.width)
    if given.low > given.high:
        raise DriverError(f"{where}: the range {given.low}-{given.high} is empty")
    return given.low, given.high


def data_words(where: str, action: Action, params: Mapping[str, int]) -> tuple[int, ...]:
    """An action's parameters as words of `data`."""
    names = [param.name for param in action.params]
    if sorted(params) != sorted(names):
        raise DriverError(f"{where}: action {action.name}: want parameters {names}; got {sorted(params)}")
    data: list[int] = []
    for param in action.params:
        value = _fits(f"{where}: {action.name}.{param.name}", params[param.name], param.width)
        data += [value] if param.width <= 64 else [value >> 64, value & (1 << 64) - 1]
    return tuple(data)


def action_of(table: Table, name: str) -> Action:
    """An action that the table may have."""
    return find({action.name: action for action in table.actions}, name, f"table {table.name}: action")


def row_of(table: Table, entry: Entry) -> Row:
    """Raises DriverError when the entry does not fit the table."""
    where = f"table {table.name}"
    keys = {key.name: key for key in table.keys}
    given = {find(keys, name, f"{where}: field").name: match for name, match in entry.keys.items()}
    exact = [0] * table.exact_words
    mask, value = [0] * table.masked_words, [0] * table.masked_words
    low, high = [0] * table.range_words, [0] * table.range_words
    priority = entry.priority
    for key in table.keys:
        place = f"{where}: {key.name}"
        match = given.get(key.name)
        if key.part == "range":
            low[key.word], high[key.word] = _range(place, key, match)
            continue
        bits, wanted = _masked(place, key, match)
        if key.part == "exact":
            if wanted != (1 << key.width) - 1:
                raise DriverError(f"{place}: want an exact value")
            _spread(key, bits & key.cut, exact)
            continue
        if key.match == "lpm":
            length = wanted.bit_count()
            if wanted != ((1 << key.width) - 1) >> (key.width - length) << (key.width - length):
                raise DriverError(f"{place}: want a prefix; got mask {wanted:#x}")
            if table.kind == "tuples" and all(key.match not in ("ternary", "range") for key in table.keys):
                priority = length  # with an LPM key alone the longest prefix wins
        _spread(key, bits & key.cut, value)
        _spread(key, wanted & key.cut, mask)
    if not 0 <= priority <= MAX_PRIORITY:
        raise DriverError(f"{where}: want a priority from 0 to {MAX_PRIORITY}; got {priority}")
    data: tuple[int, ...] = (0,)
    if table.profile:
        if entry.action or (entry.member is None) == (entry.group is None):
            raise DriverError(f"{where}: want a member or a group of {table.profile}, and no action")
        number = layout.REFERENCE
    elif entry.member is not None or entry.group is not None:
        raise DriverError(f"{where}: want an action; it has no action profile")
    else:
        action = action_of(table, entry.action)
        number, data = action.number, data_words(where, action, entry.params)
    return Row(
        tuple(exact), tuple(mask), tuple(value), tuple(low), tuple(high), priority if table.kind != "exact" else 0,
        number, data,
    )  # fmt: skip


def packed(table: Table | layout.Profile, row: Row) -> bytes:
    """struct rowN, or struct memberN."""
    data = [*row.data, *[0] * (table.data_words - len(row.data))]
    return struct.pack(f"=4I{len(data)}Q", row.action, row.priority, row.slot, 0, *data)


def entry_of(table: Table, preset: Preset) -> Entry:
    """A row that the program declares, as an Entry."""
    kinds: dict[str, Callable[[int, int], Key]] = {
        "exact": lambda value, _: Exact(value),
        "valid": lambda value, _: Exact(value),
        "ternary": Ternary,
        "lpm": Lpm,
        "range": Range,
    }
    keys: dict[str, Key] = {}
    for name, kind, value, other in preset.keys:
        if kind not in kinds:
            raise DriverError(f"table {table.name}: {name}: can't match by {kind}")
        keys[name] = kinds[kind](value, other)
    params = {param.name: value for param, value in zip(table.action(preset.action).params, preset.params, strict=True)}
    return Entry(table.name, keys, preset.action, params, preset.priority)
