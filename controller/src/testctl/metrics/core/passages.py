# SPDX-License-Identifier: Apache-2.0
"""A flow's packets at the switches they pass, as telemetry has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testctl.core import routes
from testctl.metrics.core.view import FlowView, Rows, rows_of
from testctl.records.schema import DROPPED, FATES, Array, Ints

_DUPLICATE = FATES.index("duplicate")


@dataclass(frozen=True)
class Passage:
    """The packets of one direction that came to a switch, in order of time.

    port  the one they leave by, "switch:neighbour"; the switch alone where the topology is not known
    hop   how many switches come before it on the way
    """

    switch: str
    port: str
    rows: Rows
    hop: int

    @property
    def drops(self) -> int:
        return int(np.isin(self.fates[1], DROPPED).sum())

    @property
    def fates(self) -> tuple[Ints, Array]:
        """(which packets have a fate, theirs): few have."""
        fate = self.rows["fate"]
        some = np.flatnonzero(fate)
        return some, fate[some]

    @property
    def came(self) -> int:
        """How many packets came: one that left twice has two rows."""
        again = self.rows["fate"] == _DUPLICATE
        if not again.any():
            return len(self.rows)
        twice = self.rows.where(again)
        kinds = np.stack([twice["conn"], twice["length"] > 0, twice["ordinal"]])
        return len(self.rows) - len(twice) + int(np.unique(kinds, axis=1).shape[1])

    @property
    def queued(self) -> Rows:
        """Packets that came to the port's queue (or met a full one)."""
        return self.rows.where(self.rows["queue_bytes"] >= 0) if len(self.rows) else self.rows


def passages(flow: FlowView, *, back: bool = False) -> list[Passage]:
    """The switches with telemetry that the flow's data (or what comes back) passes, in order of the way.

    Where connections leave a switch by several ports, each of these is one.
    """
    records, direction = flow.records, 1 - flow.direction if back else flow.direction
    hops = routes.hops(records.point, flow.requested, back=direction == 1)
    if not hops:
        return [
            Passage(switch, switch, rows_of(records, flow.name, switch, direction, out=False), place)
            for place, switch in enumerate(records.switches)
        ]
    seen = []
    for place, hop in enumerate(hops):
        for (switch, onward), conns in hop.items():
            if switch in records.switches:
                rows = rows_of(records, flow.name, switch, direction, out=False)
                if len(hop) > 1 and len(rows):
                    rows = rows.where(np.isin(rows["conn"], conns))
                seen.append(Passage(switch, f"{switch}:{onward}", rows, place))
    return seen


def data_passages(flow: FlowView) -> list[Passage]:
    """`passages` of packets with payload."""
    return [Passage(p.switch, p.port, p.rows.with_payload, p.hop) for p in passages(flow) if len(p.rows)]


def column_of(passages: Sequence[Passage], name: str) -> Array:
    """A column of the packets of all passages, at least one; the column of a single one is not copied."""
    columns = [passage.rows[name] for passage in passages]
    return np.concatenate(columns) if len(columns) > 1 else columns[0]


def covered(flow: FlowView) -> bool:
    """Whether there is telemetry of the flow's data at every switch of its way."""
    switches = set(routes.switches(flow.records.point, flow.requested, back=flow.direction == 1))
    seen = data_passages(flow)
    return bool(seen) and switches <= {passage.switch for passage in seen}


def residence(passage: Passage) -> tuple[Ints, Ints]:
    """(arrival, departure - arrival) in ns of every packet that was sent on."""
    sent = passage.rows.sent_on
    return sent["time_ns"], np.asarray(sent["left_ns"] - sent["time_ns"])
