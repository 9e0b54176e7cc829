# SPDX-License-Identifier: Apache-2.0
# Generated of plugins/p4c_ebpf: make gen.
"""How a translated program's state lies in its maps: what the driver packs and the C reads.

All of it is 64-bit words in the host's order, so that C and Python need no padding rules.  A key is
a list of words; a field has `bits` of one (`word`, `shift`), or two words if it is wider than 64
bits, the upper one first.  A row is { u32 action, priority, slot, spare; u64 data[] }; an action
parameter is one word of `data`, or two.  The kinds of table:

none    no keys: only the default action
exact   hash of key words → row
tuples  ternary and LPM, a tuple space search: hash of { id of a mask, key words & mask } → row; the
        masks stand in `control`, sorted by the greatest priority among their rows
ranges  rows in `control`, sorted: { mask[], value[], low[], high[], row }; if there are exact keys,
        a hash of their words gives { first row, number of rows } and the others are not looked at
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["none", "exact", "tuples", "ranges"]
Match = Literal["exact", "ternary", "lpm", "range", "valid"]

ROW_HEAD = 16
MAX_RANGES = 256
MAX_CHOICES = 128
"""Members of one group of a selector, each counted as often as its weight says."""
REFERENCE = 2**32 - 1
"""As a row's action: data[0] is a member of the table's action profile, or a group plus GROUP."""
NO_ACTION = 2**32 - 2
"""As the action of a table's default row: none is set."""
GROUP = 1 << 32
METER = "=2I7Q"
"""struct meter of runtime/meter.h."""
MAX_TUPLES = 64

NEEDED = ".rodata.needed"
"""The constants that say what of a program is needed, a byte each: at a place of its own, or of a table's index behind
those.  The verifier looks at no code whose condition is such a 0, and removes it."""
NEEDS_LINKS, NEEDS_PARKS, MOST_COPIES, NEEDS_TABLE = range(4)
"""Links that change; packets that are kept; copies that a group makes at the most; the table with index 0."""


@dataclass(frozen=True)
class Key:
    """A field of a table's key; `part` is the list of words it lies in; cut: the program's own mask on it."""

    name: str
    match: Match
    width: int
    part: Literal["exact", "masked", "range"]
    word: int
    shift: int
    cut: int


@dataclass(frozen=True)
class Param:
    name: str
    width: int
    word: int


@dataclass(frozen=True)
class Action:
    name: str
    number: int
    params: tuple[Param, ...]


@dataclass(frozen=True)
class Preset:
    """A row or default that the program itself has; keys as [name, match, value, other] of the JSON."""

    action: str
    params: tuple[int, ...]
    keys: tuple[tuple[str, str, int, int], ...] = ()
    priority: int = 0


@dataclass(frozen=True)
class Table:
    """actions: all that a row or the default may have; default: its action is "" where the program has none.

    control: where its part of the map `.data.control` begins; *_words: the length of the key's parts.
    """

    name: str
    index: int
    kind: Kind
    capacity: int
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    default: Preset
    constant: bool
    entries: tuple[Preset, ...]
    fixed: bool
    """The program declares the rows; none may be added."""
    direct: str
    """The name of its direct counter, or ""."""
    exact_words: int
    masked_words: int
    range_words: int
    data_words: int
    control: int
    tuples: int
    meter: str = ""
    """The name of its direct meter, or ""."""
    profile: str = ""
    """The name of its action profile, or ""."""

    def action(self, name: str) -> Action:
        return next(one for one in self.actions if one.name == name)

    @property
    def row_bytes(self) -> int:
        return ROW_HEAD + 8 * self.data_words

    @property
    def hash_words(self) -> int:
        """Words of the key of its hash."""
        if self.kind == "ranges":
            return self.exact_words
        return self.exact_words + self.masked_words + (self.kind == "tuples")

    @property
    def mask_bytes(self) -> int:
        """One of the masks of a tuple space: { u64 mask[]; u32 id; u32 highest; }."""
        return 8 * (self.exact_words + self.masked_words) + 8

    @property
    def range_bytes(self) -> int:
        return 8 * (2 * self.masked_words + 2 * self.range_words) + self.row_bytes

    @property
    def control_bytes(self) -> int:
        """{ u32 rows; u32 tuples; row fallback; then masks or ranges }."""
        body = {"tuples": self.tuples * self.mask_bytes, "ranges": self.capacity * self.range_bytes}
        return 8 + self.row_bytes + body.get(self.kind, 0)


@dataclass(frozen=True)
class Cells:
    """A register (width > 0) or an indirect counter; `map` is the BPF map's name."""

    name: str
    map: str
    size: int
    width: int


@dataclass(frozen=True)
class Meter:
    """An indirect meter; a direct one has its table's slots, and size 0."""

    name: str
    map: str
    size: int
    packets: bool


@dataclass(frozen=True)
class Profile:
    """An action profile: array `a<index>` has its members as rows, array `s<index>` its groups, if it is a selector."""

    name: str
    index: int
    size: int
    selector: bool
    data_words: int


@dataclass(frozen=True)
class ValueSet:
    """A parser value set: the hash `map` of two words, its fields in `widths` bits one behind the other."""

    name: str
    map: str
    size: int
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Tap:
    """A field of the telemetry record."""

    name: str
    offset: int
    bytes: int


@dataclass
class Layout:
    source: str
    tables: tuple[Table, ...] = ()
    registers: tuple[Cells, ...] = ()
    counters: tuple[Cells, ...] = ()
    telemetry: tuple[Tap, ...] = ()
    record_bytes: int = 0
    control_bytes: int = 0
    most_copies: int = 0
    meters: tuple[Meter, ...] = ()
    profiles: tuple[Profile, ...] = ()
    first_port: int = 1
    value_sets: tuple[ValueSet, ...] = ()
    needed_bytes: int = 0
    """Of NEEDED."""
    sources: str = ""
    """A hash of the C that was compiled, its headers and the compiler's flags."""
    object: str = ""
    """A hash of the object."""
    counts_waiting: bool = False
    """Whether it has the map `waiting` (runtime/waiting.h)."""
    rounds: int = 0
    """How often a packet may come again: as often the program follows itself among a port's filters."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1) + "\n"


def from_json(text: str) -> Layout:
    """What to_json wrote."""
    raw: dict[str, Any] = json.loads(text)

    def preset(one: dict[str, Any]) -> Preset:
        return Preset(one["action"], tuple(one["params"]), tuple(tuple(k) for k in one["keys"]), one["priority"])

    tables = [
        Table(
            **{
                **one,
                "keys": tuple(Key(**key) for key in one["keys"]),
                "actions": tuple(
                    Action(a["name"], a["number"], tuple(Param(**p) for p in a["params"])) for a in one["actions"]
                ),
                "default": preset(one["default"]),
                "entries": tuple(preset(entry) for entry in one["entries"]),
            }
        )
        for one in raw["tables"]
    ]
    plain = {field.name: raw[field.name] for field in dataclasses.fields(Layout)}
    kinds: dict[str, Any] = {
        "registers": Cells, "counters": Cells, "telemetry": Tap, "meters": Meter, "profiles": Profile
    }  # fmt: skip
    lists = {name: tuple(kind(**one) for one in raw[name]) for name, kind in kinds.items()}
    value_sets = tuple(ValueSet(**{**one, "widths": tuple(one["widths"])}) for one in raw["value_sets"])
    return Layout(**{**plain, **lists, "tables": tuple(tables), "value_sets": value_sets})
