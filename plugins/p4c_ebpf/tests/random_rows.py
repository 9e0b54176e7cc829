# SPDX-License-Identifier: Apache-2.0
"""Random rows for the tables of any program, from its P4Info alone; the seed decides everything.

Keys and packets take their values from the same few (`Values`), so that packets hit rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from testctl_agent.switch.drivers.driver import Entry, Exact, Key, Lpm, Range, Ternary
from testctl_bmv2.p4info import Action, Field, Info, Table

PORTS = (1, 2, 3, 4)
"""The P4 ports there are."""
GROUPS = (1, 2, 3, 4, 5, 6, 7)
"""The multicast groups there are; each has other ports."""
DROP_PORT = 511
_PORT_BITS, _GROUP_BITS = 9, 16
_WEIGHTS = (50, 20, 12, 6, 6, 6)
"""How often each of the numbers of a width is taken: rows of many keys shall be hit, too."""
_MAX_ROWS = 24


@dataclass
class Values:
    """A few numbers of every width, the first of them the most frequent."""

    random: Random
    most: int = 0
    """Arguments stay below it, if it is not 0: they may be the index of a register, and BMv2 reads beyond its end."""
    known: dict[int, list[int]] = field(default_factory=dict)

    def some(self, bits: int) -> int:
        """One of the few numbers of this width, or now and then any other."""
        if bits <= 2 or self.random.random() < 0.05:
            return self.random.getrandbits(bits)
        if bits not in self.known:
            first, second = self.random.getrandbits(bits), self.random.getrandbits(bits)
            self.known[bits] = [1, first, 2, second, 0, (1 << bits) - 1] if bits <= 16 else [
                first, second, 1, self.random.getrandbits(bits), 0, (1 << bits) - 1]  # fmt: skip
        return self.random.choices(self.known[bits], _WEIGHTS)[0]

    def parameter(self, bits: int) -> int:
        """An argument of an action: of the width of a port one that there is, of that of a group mostly."""
        made = self._parameter(bits)
        return made % self.most if self.most and bits != _PORT_BITS else made

    def _parameter(self, bits: int) -> int:
        pick = self.random.random()
        if bits == _PORT_BITS:  # BMv2 has every port there can be, eBPF only those it was given
            return self.random.choice(PORTS) if pick < 0.9 else DROP_PORT
        if bits == _GROUP_BITS and pick < 0.3:
            return self.random.choice((0, *GROUPS))
        if pick < 0.8 and bits > 3:
            return self.random.choice((0, 1, 1, 1, 2, 2, 3, 7))
        return self.some(bits)


def key(values: Values, one: Field) -> Key | None:
    """A match of the field's kind; None leaves the field out."""
    random, most = values.random, one.most
    value = values.some(one.bits)
    if one.match == "exact":
        # a 9-bit key is a port
        return Exact(random.choice(PORTS) if one.bits == _PORT_BITS else value)
    if random.random() < 0.25:
        return None
    if one.match == "lpm":
        return Lpm(value, random.choice((one.bits, random.randint(0, one.bits))))
    if one.match == "range":
        if one.bits > 1 and random.random() < 0.4:  # what is counted is small
            return Range(random.choice((0, 1, 2)), min(most, max(2, random.choice((3, value)))))
        low, high = sorted((value, random.choice((value, values.some(one.bits), random.getrandbits(one.bits)))))
        return Range(low, high)
    if one.match == "optional":
        return Exact(value)
    return Ternary(value, random.choice((most, most, random.getrandbits(one.bits), 1 << random.randrange(one.bits))))


def _arguments(values: Values, action: Action) -> dict[str, int]:
    return {name: values.parameter(one.bits) for name, one in action.params.items()}


def rows(info: Info, values: Values) -> list[Entry]:
    """Rows for all tables but those of action profiles: other keys each, other priorities each."""
    values.most = min((one.size for one in info.registers.values()), default=0)
    found: list[Entry] = []
    for table in info.tables.values():
        if not table.constant and table.keys and not table.shared:
            found += _rows(table, values)
    return found


def _rows(table: Table, values: Values) -> list[Entry]:
    random = values.random
    wanted = random.randint(1, min(_MAX_ROWS, table.size))
    priorities = random.sample(range(4 * wanted), wanted)
    found: list[Entry] = []
    seen = set()
    for priority in priorities:
        keys = {name: made for name, one in table.keys.items() if (made := key(values, one)) is not None}
        same = tuple(sorted((name, _seen(table.keys[name], made)) for name, made in keys.items()))
        if same in seen:
            continue
        seen.add(same)
        action = random.choice(list(table.actions))
        found.append(Entry(table.name, keys, action.name, _arguments(values, action), priority if table.ordered else 0))
    return found


def _seen(one: Field, made: Key) -> tuple[int, int]:
    """What tells a match from others of its field."""
    match made:
        case Lpm(value, length):
            return value >> (one.bits - length), length
        case Ternary(value, mask):
            return value & mask, mask
        case Range(low, high):
            return low, high
        case Exact(value):
            return value, one.most


def defaults(info: Info, values: Values) -> list[tuple[str, str, dict[str, int]]]:
    """Default actions for about every third table whose program leaves that open: (table, action, arguments)."""
    found = []
    for table in info.tables.values():
        if table.defaults and not table.constant and not table.shared and values.random.random() < 0.3:
            action = values.random.choice(list(table.defaults))
            found.append((table.name, action.name, _arguments(values, action)))
    return found
