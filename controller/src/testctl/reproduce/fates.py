# SPDX-License-Identifier: Apache-2.0
"""Packets that were lost, marked, late or doubled apart from the link's model, as packet actions by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from testctl_agent.spec import fate

from testctl.records.schema import FIN, RST, SYN, Bools, Ints
from testctl.reproduce.application import Application
from testctl.reproduce.port import Link, roundest
from testctl.reproduce.wire import Way, Wire

_EXACT_NS = 500


def fates_of(
    wire: Wire, links: Sequence[Link], flows: Mapping[str, Sequence[Application]], unknown: list[str]
) -> tuple[str, str]:
    """(the value of `fate`, "" without any; what it is of); what no packet action can do is added to `unknown`."""
    made: list[fate.Fate] = []
    counts: dict[str, int] = {}
    numbers = {name: at for at, (name, _) in enumerate(wire.flows)}
    for name, conns in flows.items():
        app = conns[0]
        for way, link, toward in zip(wire.ways, links, (True, False), strict=True):
            of_conn = (way.flow == numbers[app.flow]) & (way.conn == app.conn)
            carries = app.forward != app.reverse
            of_kind = way.data if toward == carries else ~way.data & ((way.flags & (SYN | FIN | RST)) == 0)
            kind = np.asarray(of_conn & of_kind)
            what: fate.What = "data" if toward == carries else "acks"
            made += _of(name, what, way, link, of_conn, kind, counts, unknown)
    kept: list[fate.Fate] = []
    rows = 0
    for action in made:
        rows += len(action.ranges)
        if rows <= fate.MAX_ROWS and len(fate.show([*kept, action])) <= fate.LONGEST:
            kept.append(action)
    if len(kept) < len(made):
        unknown.append(
            f"{len(made) - len(kept)} of {len(made)} packet actions: a plan has at most {fate.MAX_ROWS} ranges"
        )
    why = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return (fate.show(kept) if kept else ""), f"{why} that the port's queue does not explain"


def _of(
    name: str, what: fate.What, way: Way, link: Link, of_conn: Bools, kind: Bools, counts: dict[str, int],
    unknown: list[str],
) -> list[fate.Fate]:  # fmt: skip
    ordinal = np.cumsum(kind)
    fresh = kind & _first(way, of_conn) if what == "data" else np.zeros(len(kind), np.bool_)
    first = np.cumsum(fresh)
    made: list[fate.Fate] = []

    def add(action: fate.Action, chosen: Bools, word: str, by_ns: int = 0) -> None:
        other = int((chosen & of_conn & ~kind).sum())
        if other:
            unknown.append(f"{name}: {other} {word} that carry no data, or are SYN, FIN or RST")
        chosen = chosen & kind
        counts[word] = counts.get(word, 0) + int(chosen.sum())
        for rows, number, is_first in ((chosen & fresh, first, True), (chosen & ~fresh, ordinal, False)):
            if rows.any():
                made.append(
                    fate.Fate(
                        action, name, what, _ranges(np.asarray(number[rows], np.int64)), first=is_first, by_ns=by_ns
                    )
                )

    add("drop", link.dropped & of_conn, "losses")
    if what == "data":
        add("mark", link.marked & of_conn, "marks")
    late = link.late_ns * of_conn
    times = np.unique(late[late > 0])
    held = times[times <= fate.MAX_HOLD_NS - _EXACT_NS][: fate.MAX_ROWS]
    for by_ns in held:
        add("delay", late == by_ns, "late packets", roundest(int(by_ns) - _EXACT_NS, int(by_ns) + _EXACT_NS))
    if more := len(times) - len(held):
        unknown.append(f"{name}: packets that came late by {more} other times than a plan can have")
    add("duplicate", link.doubled & of_conn, "doubled packets")
    return made


def _first(way: Way, of_conn: Bools) -> Bools:
    """First transmissions: data above all that the connection sent before."""
    rows = np.flatnonzero(of_conn & way.data)
    ends = (way.seq + way.length)[rows]
    before = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]]) if len(rows) else ends
    fresh = np.zeros(len(of_conn), np.bool_)
    fresh[rows] = ends > before
    return fresh


def _ranges(numbers: Ints) -> tuple[tuple[int, int], ...]:
    cuts = np.flatnonzero(np.diff(numbers) > 1) + 1
    return tuple((int(part[0]), int(part[-1])) for part in np.split(numbers, cuts))
