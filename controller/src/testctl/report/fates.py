# SPDX-License-Identifier: Apache-2.0
"""Packet actions in the report: requests and results, and the affected packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testctl.metrics.core.passages import passages
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import FATES, Ints
from testctl.results import RunPoint

MAX_PACKETS = 60
"""Maximum number of listed packets of one action; the others are only counted."""

MAX_RULES = 12
"""Rules that the terminal lists."""

MAX_LETTERS = 80
"""Of a rule in the terminal: a longer one is cut in its middle, as its end names the flow."""

WORDS = {
    "drop": "dropped",
    "mark": "marked CE",
    "echo": "ECE set",
    "clear": "CE cleared",
    "lose": "lost",
    "delay": "delayed",
    "reorder": "delayed at random",
    "duplicate": "duplicated",
    "corrupt": "corrupted",
    "corrupt header": "its header corrupted",
    "trim": "trimmed",
    "swap": "swapped with the next",
    "queue_mark": "marked CE by the port",
    "buffer_drop": "dropped by the full buffer",
    "link_drop": "lost by the link",
    "aqm_drop": "dropped by the port's AQM",
    "other_drop": "dropped: no port for it",
}
"""What a fate did, in words."""


@dataclass(frozen=True)
class ActedOn:
    """One packet and its fate; times in ns, bytes relative to the connection's first."""

    time_ns: int
    port: str
    flow: str
    what: str
    packet: str
    queue_bytes: int


@dataclass(frozen=True)
class Fates:
    """asked: findings as in fates.json; packets: those listed, by time; counts: (port, flow, what, how many) of all."""

    asked: Sequence[Mapping[str, Any]]
    packets: Sequence[ActedOn]
    counts: Sequence[tuple[str, str, str, int]]

    def __bool__(self) -> bool:
        return bool(self.asked or self.counts)

    @property
    def left_out(self) -> int:
        return sum(count for *_, count in self.counts) - len(self.packets)

    def to_json(self) -> dict[str, Any]:
        """As the page's scripts read it."""
        names = ("switch", "rule", "conn", "asked", "happened", "which")
        return {
            "asked": [
                [*(one[name] for name in names), one["fault"] or one["note"], int(bool(one["fault"]))]
                for one in self.asked
            ],
            "counts": [list(count) for count in self.counts],
            "packets": [
                [
                    f"{p.time_ns / 1e9:.9f}",
                    p.port,
                    p.flow,
                    p.packet,
                    p.what,
                    p.queue_bytes if p.queue_bytes >= 0 else "",
                ]
                for p in self.packets
            ],
            "left_out": self.left_out,
        }


def read_fates(point: RunPoint, records: Records) -> Fates:
    packets: list[ActedOn] = []
    counts: list[tuple[str, str, str, int]] = []
    for flow in records.flows:
        for port, index in _acted_on(records, flow):
            codes = records.column("fate")[index]
            for code in np.unique(codes):
                rows = index[codes == code]
                what = WORDS.get(FATES[code], FATES[code]) if code < len(FATES) else str(code)
                counts.append((port, flow, what, len(rows)))
                packets += _listed(records, flow, port, what, rows[:MAX_PACKETS])
    return Fates(point.fates, sorted(packets, key=lambda packet: packet.time_ns), counts)


def _acted_on(records: Records, flow: str) -> Iterator[tuple[str, Ints]]:
    """(port, row numbers of the packets with a fate) at each switch, forth and back."""
    seen = view(records, flow)
    for passage in (*passages(seen), *passages(seen, back=True)):
        if len(passage.rows):
            yield passage.port, passage.rows.index[passage.rows["fate"] > 0]


def _listed(records: Records, flow: str, port: str, what: str, rows: Ints) -> Iterator[ActedOn]:
    names = ("time_ns", "conn", "seq", "ack", "length", "ordinal", "first_ordinal", "queue_bytes", "direction")
    columns = {name: records.column(name)[rows].tolist() for name in names}
    for values in zip(*columns.values(), strict=True):
        packet = dict(zip(columns, values, strict=True))
        name = f"{flow} #{packet['conn']}" if packet["conn"] else flow
        yield ActedOn(packet["time_ns"], port, name, what, _packet(packet), packet["queue_bytes"])


def _packet(packet: Mapping[str, int]) -> str:
    """ "data 3 (first transmission 3) 2896:4344", "ACK 12: 17376"."""
    if packet["length"]:
        first = f"first transmission {packet['first_ordinal']}" if packet["first_ordinal"] else "a retransmission"
        return f"data {packet['ordinal']} ({first}) {packet['seq']}:{packet['seq'] + packet['length']}"
    return f"ACK {packet['ordinal']}: {packet['ack']}" if packet["ordinal"] else f"control, sequence {packet['seq']}"


def lines(points: Sequence[RunPoint]) -> list[str]:
    """What the terminal says of the fates asked in these points, a line a rule."""
    by_rule: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for point in points:
        for found in point.fates:
            by_rule.setdefault((found["switch"], found["rule"]), []).append((found["happened"], found["asked"]))
    texts = []
    for (switch, rule), counts in list(by_rule.items())[:MAX_RULES]:
        least, most = min(counts), max(counts)
        amount = f"{least[0]} of {least[1]}" + (f" to {most[0]} of {most[1]}" if most != least else "")
        often = f", {len(counts)} times" if len(counts) > 1 else ""
        short = rule if len(rule) <= MAX_LETTERS else f"{rule[: MAX_LETTERS - 24]} … {rule[-20:]}"
        texts.append(f"{switch}: {short}: {amount} packets{often}")
    if len(by_rule) > MAX_RULES:
        texts.append(f"and {len(by_rule) - MAX_RULES} more rules")
    return texts
