# SPDX-License-Identifier: Apache-2.0
"""One STF test on a translated program: rows, packets and expectations, as p4c's runner does it with BMv2.

Beyond that runner, counters are checked.  The kernel has no frame below 14 bytes: a test that has one is
run with the same payload behind every packet.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from p4c_ebpf.compile import Compiled
from p4c_ebpf.layout import Table
from testctl_agent.switch.drivers.driver import Entry, Exact, Key, Lpm, Rates, Ternary

from plugins.p4c_ebpf.tests.harness import EbpfTarget
from plugins.p4c_ebpf.tests.stf_grammar import Statement, number

SHORTEST = 14
PAYLOAD = bytes(range(1, 65))
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Failed(Exception):
    """What the test expected did not happen."""


def _one(names: Iterable[str], wanted: str, what: str) -> str:
    """The name, or the one that ends in it."""
    every = list(names)
    for fits in ([wanted], [one for one in every if one.endswith("." + wanted)], [
        one for one in every if one.endswith(wanted)
    ]):  # fmt: skip
        if len(fits) == 1 and fits[0] in every:
            return fits[0]
    raise Failed(f"no {what} {wanted!r}: {', '.join(every)}")


def key_name(table: Table, wanted: str) -> str:
    """The table's key that STF calls so: a suffix of its name, `$0` for `[0]`, `valid` for `$valid$`."""
    names = [one.name for one in table.keys]
    element = re.sub(r"\$(\d+)", r"[\1]", wanted)
    for one in (wanted, element, f"{wanted}.$valid$", wanted.removesuffix(".valid") + ".$valid$"):
        fits = [name for name in names if name == one or name.endswith(f".{one}") or name == f"{one}$"]
        if fits:
            return fits[0]
    return _one(names, "$valid$" if wanted == "valid" else wanted, f"key of {table.name}")


def _ternary(text: str) -> tuple[int, int]:
    """Value and mask of a constant that may have digits `*`."""
    base = {"0x": 16, "0b": 2, "0o": 8}.get(text[:2].lower())
    if base is None or "*" not in text:
        return number(text), -1
    every = {16: "F", 2: "1", 8: "7"}[base]
    digits = text[2:]
    mask = "".join("0" if one == "*" else every for one in digits)
    return int(digits.replace("*", "0"), base), int(mask, base)


def _match(table: Table, name: str, text: str) -> Key:
    key = next(one for one in table.keys if one.name == name)
    every = (1 << key.width) - 1
    if key.match == "lpm":
        value, slash, length = text.partition("/")
        if slash:
            return Lpm(number(value), number(length))
        bits, mask = _ternary(value)
        return Lpm(bits & every, (mask & every).bit_count())
    value_, mask = _ternary(text)
    if key.match == "ternary":
        # BMv2's mask is all ones in the digits written; a constant without * has as many as it has digits
        digits = {"0x": 4, "0b": 1, "0o": 3}.get(text[:2].lower(), 0) * len(text[2:])
        return Ternary(value_, mask & every if mask != -1 else every if not digits else every & ((1 << digits) - 1))
    return Exact(value_)


class StfTest:
    """A program with its STF statements; `padding` is put behind every packet."""

    def __init__(self, program: Compiled, statements: Sequence[Statement], padding: bytes = b"") -> None:
        ports = {int(one.words[0]) for one in statements if one.op in ("packet", "expect")}
        ports |= {number(one) for each in statements if each.op == "mc_node_create" for one in each.words[1:]}
        ports |= {number(one.words[1]) for one in statements if one.op == "mirroring_add"}
        self.target = EbpfTarget(program, ports=ports | set(range(16)))
        self.tables = {one.name: one for one in program.layout.tables}
        self.statements, self.padding = statements, padding
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self.expected: dict[int, list[str]] = defaultdict(list)
        self.entries: dict[str, Entry] = {}
        self.nodes: list[tuple[int, list[int]]] = []
        self.groups: dict[int, list[int]] = {}

    def run(self) -> None:
        """Raises Failed, or what the driver says."""
        try:
            for one in self.statements:
                getattr(self, f"_{one.op}", self._ignored)(one)
            self._compare()
        finally:
            self.target.close()

    def _ignored(self, one: Statement) -> None:
        """wait, remove, no_packet, and what only reads."""

    def _entry(self, one: Statement) -> Entry:
        table = self.tables[_one(self.tables, one.table, "table")]
        keys: dict[str, Key] = {key.name: Exact(0) for key in table.keys if key.match in ("exact", "valid")}
        for name, text in one.keys:
            found = key_name(table, name)
            keys[found] = _match(table, found, text)
        action = _one((each.name for each in table.actions), one.action, f"action of {table.name}")
        return Entry(table.name, keys, action, {name: number(value) for name, value in one.params}, one.priority)

    def _add(self, one: Statement) -> None:
        entry = self._entry(one)
        self.target.driver.insert(entry)
        self.entries[one.label] = entry

    def _setdefault(self, one: Statement) -> None:
        entry = self._entry(one)
        self.target.driver.set_default(entry.table, entry.action, entry.params)

    def _packet(self, one: Statement) -> None:
        for port, data in self.target.inject(int(one.words[0]), bytes.fromhex(one.words[1]) + self.padding):
            self.sent[port].append(data)

    def _expect(self, one: Statement) -> None:
        self.expected[int(one.words[0])].append(one.words[1])

    def _check_counter(self, one: Statement) -> None:
        name, index, kind, compare, value = one.words
        if not kind:
            return
        driver = self.target.driver
        count = driver.direct(self.entries[index[1:]]) if index.startswith("$") else driver.counter(name, number(index))
        got = count.packets if kind.lower() == "packets" else count.bytes - count.packets * len(self.padding)
        if not _COMPARE[compare](got, number(value)):
            raise Failed(f"line {one.line}: {name}({index}): want {kind} {compare} {value}; got {got}")

    def _mc_node_create(self, one: Statement) -> None:
        self.nodes.append((number(one.words[0]), [number(port) for port in one.words[1:]]))

    def _mc_node_associate(self, one: Statement) -> None:
        group, node = (number(word) for word in one.words)
        self.groups.setdefault(group, []).append(node)
        self.target.driver.multicast(group, *self._copies(group))

    def _copies(self, group: int) -> tuple[list[int], list[int]]:
        both = [(port, rid) for node in self.groups[group] for rid, ports in [self.nodes[node]] for port in ports]
        return [port for port, _ in both], [rid for _, rid in both]

    def _mirroring_add(self, one: Statement) -> None:
        self.target.driver.mirror(number(one.words[0]), [number(one.words[1])])

    def _mirroring_add_mc(self, one: Statement) -> None:
        self.target.driver.mirror(number(one.words[0]), *self._copies(number(one.words[1])))

    def _mirroring_delete(self, one: Statement) -> None:
        self.target.driver.mirror(number(one.words[0]), [])

    def _register_write(self, one: Statement) -> None:
        self.target.driver.write_register(one.words[0], number(one.words[1]), number(one.words[2]))

    def _rates(self, words: Sequence[str]) -> Rates:
        """BMv2's rates are a microsecond's."""
        (low, low_burst), (high, high_burst) = (word.split(":") for word in words)
        return Rates(int(float(low) * 1e6), int(low_burst), int(float(high) * 1e6), int(high_burst))

    def _meter_set_rates(self, one: Statement) -> None:
        self.target.driver.meter(one.words[0], number(one.words[1]), self._rates(one.words[2:]))

    def _meter_array_set_rates(self, one: Statement) -> None:
        meter = next(each for each in self.target.compiled.layout.meters if each.name.endswith(one.words[0]))
        for index in range(meter.size):
            self.target.driver.meter(meter.name, index, self._rates(one.words[1:]))

    def _compare(self) -> None:
        """Without any expectation a test is about counters; a port that it does not name is none in p4c's."""
        named = {int(one.words[0]) for one in self.statements if one.op == "packet"}
        for port in sorted({*self.sent, *self.expected} if self.expected else named & {*self.sent}):
            got, want = self.sent[port], self.expected[port]
            if len(got) != len(want):
                raise Failed(f"port {port}: want {len(want)} packets; got {[one.hex() for one in got]}")
            for at, (data, pattern) in enumerate(zip(got, want, strict=True)):
                if not same(data, pattern, self.padding):
                    raise Failed(f"port {port}, packet {at}: want {pattern}; got {data.hex()}")


def same(data: bytes, pattern: str, padding: bytes = b"") -> bool:
    """As p4c's testutils.compare_pkt: `*` is any digit, `$` at the end means nothing more."""
    exact = pattern.endswith("$")
    wanted = pattern.removesuffix("$") + (padding.hex().upper() if exact else "")
    text = data.hex().upper()
    if len(text) < len(wanted) or (exact and len(text) > len(wanted)):
        return False
    return all(one in ("*", other) for one, other in zip(wanted, text, strict=False))


def short(statements: Sequence[Statement]) -> bool:
    """Some packet in or out has fewer bytes than a frame."""
    data = [one.words[1] for one in statements if one.op in ("packet", "expect")]
    return any(one and len(one.removesuffix("$")) < 2 * SHORTEST for one in data)
