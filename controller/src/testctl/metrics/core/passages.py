# SPDX-License-Identifier: Apache-2.0
"""A flow's packets at the switches they pass, as telemetry has them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from testctl.metrics.core.view import FlowView, Rows, rows_of
from testctl.records.schema import DROPPED, FATES, Bools, Ints

_DUPLICATE = FATES.index("duplicate")


@dataclass(frozen=True)
class Passage:
    """The packets of one direction that came to a switch, in order of time.

    port  the one they leave by, "switch:neighbour"; the switch alone where the topology is not known
    """

    switch: str
    port: str
    rows: Rows

    @property
    def dropped(self) -> Bools:
        return np.isin(self.rows["fate"], DROPPED)

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
    def sent(self) -> Rows:
        return self.rows.where(self.rows["left_ns"] >= 0) if len(self.rows) else self.rows

    @property
    def queued(self) -> Rows:
        """Packets that came to the port's queue (or found it full)."""
        return self.rows.where(self.rows["queue_bytes"] >= 0) if len(self.rows) else self.rows


def passages(flow: FlowView, *, back: bool = False) -> list[Passage]:
    """The switches with telemetry that the flow's data (or what comes back) passes, in order of the way."""
    ends = (flow.receiver, flow.sender) if back else (flow.sender, flow.receiver)
    way = flow.records.point.topology.path(*ends)
    onward = dict(pairwise(way))
    switches = [name for name in way if name in flow.records.switches] if way else flow.records.switches
    direction = 1 - flow.direction if back else flow.direction
    found = []
    for switch in switches:
        port = f"{switch}:{onward[switch]}" if switch in onward else switch
        found.append(Passage(switch, port, rows_of(flow.records, flow.name, switch, direction, out=False)))
    return found


def data_passages(flow: FlowView) -> list[Passage]:
    """`passages` of packets with payload."""
    return [Passage(p.switch, p.port, p.rows.where(p.rows["length"] > 0)) for p in passages(flow) if len(p.rows)]


def covered(flow: FlowView) -> bool:
    """Whether there is telemetry of the flow's data at every switch of its way."""
    way = flow.records.point.topology.path(flow.sender, flow.receiver)
    found = data_passages(flow)
    return bool(found) and len(found) >= len(way) - 2 and len(found[0].rows) > 0


def residence(passage: Passage) -> tuple[Ints, Ints]:
    """(arrival, departure - arrival) in ns of every packet that was sent on."""
    sent = passage.sent
    return sent["time_ns"], np.asarray(sent["left_ns"] - sent["time_ns"])
