# SPDX-License-Identifier: Apache-2.0
"""How the tables of a P4 program are filled, whatever runs it: eBPF, BMv2 or another target.

Names are as in P4Info: a table, action, counter or register is called by its fully qualified
name ("ingress.fate.rules") or by any suffix of it that is unique.  Fields and parameters are given
as whole numbers; the driver knows their widths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from testctl_agent.spec.errors import DriverError

T = TypeVar("T")


@dataclass(frozen=True)
class Exact:
    """The field equals `value`."""

    value: int


@dataclass(frozen=True)
class Ternary:
    """The field equals `value` in the bits of `mask`; mask 0 is "any"."""

    value: int
    mask: int


@dataclass(frozen=True)
class Lpm:
    """The field equals `value` in its first `length` bits."""

    value: int
    length: int


@dataclass(frozen=True)
class Range:
    """`low` <= field <= `high`."""

    low: int
    high: int


Key = Exact | Ternary | Lpm | Range


@dataclass(frozen=True)
class Entry:
    """One row of a table.

    keys      field name as in P4Info → match; a ternary, range or LPM field left out matches anything
    params    action parameter → value
    priority  of tables with ternary or range fields: the highest wins; equal ones must not overlap
    member    of tables with an action profile: this member of it, instead of an action
    group     of tables with an action selector: this group of it, instead of an action
    """

    table: str
    keys: Mapping[str, Key]
    action: str
    params: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0
    member: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class Rates:
    """What a meter allows: bytes (or packets) a second, and at once."""

    committed: int
    committed_burst: int
    peak: int
    peak_burst: int


@dataclass(frozen=True)
class Count:
    packets: int
    bytes: int


class Driver(Protocol):
    """One running program.  Every call raises DriverError: who, wanted, got.

    insert       add a row; an equal key is an error, and so is a table that is full
    delete       remove the row with these keys (and priority); an error when it is not there
    clear        remove all rows of a table
    set_default  the action of packets that match no row; "" puts back the program's own
    multicast    the ports (P4 numbers) that a packet of this group is copied to; none deletes it.
                 instances: each copy's replication id, standard_metadata.egress_rid (0 without)
    counter      cell `index` of an indirect counter
    direct       packets and bytes that a row has matched
    register     all cells; write_register sets one
    """

    def insert(self, entry: Entry) -> None: ...

    def delete(self, entry: Entry) -> None: ...

    def clear(self, table: str) -> None: ...

    def set_default(self, table: str, action: str, params: Mapping[str, int]) -> None: ...

    def multicast(self, group: int, ports: Sequence[int], instances: Sequence[int] = ()) -> None: ...

    def counter(self, name: str, index: int) -> Count: ...

    def direct(self, entry: Entry) -> Count: ...

    def register(self, name: str) -> list[int]: ...

    def write_register(self, name: str, index: int, value: int) -> None: ...


def instances_of(who: str, ports: Sequence[int], instances: Sequence[int]) -> list[int]:
    """The replication id of each copy; DriverError unless there are none, or one of 16 bits for each port."""
    numbers = list(instances) or [0] * len(ports)
    if len(numbers) != len(ports) or not all(0 <= number < 1 << 16 for number in numbers):
        raise DriverError(f"{who}: want {len(ports)} instances of 16 bits; got {numbers}")
    return numbers


def find(things: Mapping[str, T], name: str, what: str) -> T:
    """The thing with this name, or with a name that ends in it; DriverError when none or several do."""
    if name in things:
        return things[name]
    fits = [full for full in things if full.endswith(f".{name}")]
    if len(fits) == 1:
        return things[fits[0]]
    if fits:
        raise DriverError(f"{what} {name!r}: want a name that only one has; {', '.join(sorted(fits))} have it")
    raise DriverError(f"{what} {name!r}: want one of {', '.join(sorted(things)) or 'none'}")
