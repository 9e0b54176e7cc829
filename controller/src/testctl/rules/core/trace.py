# SPDX-License-Identifier: Apache-2.0
"""All packets of a flow as the host at one of its ends saw them, with the known facts of the host: a rule's input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
from testctl_agent.params.flow.workload import GENERATOR
from testctl_agent.spec.fate import UNSUMMED, parse

from testctl.records import Records
from testctl.records.schema import RST, SENDER_COLUMNS, TCP_EVENT_NAMES, Array, Bools, Ints, codes_of, numbers_of
from testctl.rules.core.rows import Rows
from testctl.rules.core.scoreboard import Scoreboard

T = TypeVar("T")
_READS = ("read_rate", "read_pause", "receive_buffer", "receive_buffer_later")
_DROPPED = {
    "TCPRcvQDrop": "had no memory for some packets",
    "TCPOFODrop": "had no memory for some packets",
    "OfoPruned": "had no memory for some packets",
    "TCPBacklogDrop": "had no memory for some packets",
    "PAWSEstab": "refused packets with old timestamps",
}
"""What a kernel counts that drops data which it had, or which came within the window that it had offered."""


def once(make: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """A function of a trace, computed once and forgotten with its columns."""

    @wraps(make)
    def kept(trace: Trace) -> T:
        if make not in trace.made:
            trace.made[make] = make(trace)
        made: T = trace.made[make]
        return made

    return kept


@dataclass
class Trace(Rows):
    """The packets that a host sent and received of a flow, what each end knew by then, and how the host was set."""

    @cached_property
    def reads_slowly(self) -> str:
        """Why the host's application may leave data unread, which holds ACKs back; "": it reads what comes."""
        if self.option("generator", "") == "command":
            return f"{self.flow} is a program of the plan's, which may leave data unread"
        slow = [name for name in _READS if self.option(name, "none") not in ("none", None)]
        return f"the receiver of {self.flow} has a {slow[0]}" if slow else ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The point's parameters of the host."""
        return self.records.point.settings.get(self.host, {})

    def option(self, name: str, otherwise: Any) -> Any:
        """An option of the flow's generator."""
        requested = self.records.point.flow(self.flow)
        return otherwise if requested is None else requested.options.get(name, otherwise)

    @cached_property
    def cc(self) -> str:
        """Congestion control of the host's sockets; "": not known."""
        return str(self.option("cc", self.settings.get("cc", "")))

    @property
    def dctcp(self) -> bool:
        """Whether it is a kind of DCTCP."""
        return self.cc.startswith("dctcp")

    @cached_property
    def delayed(self) -> str:
        """Why packets may leave the host after TCP sent them, so that a capture has another order; "": they don't."""
        queue = self.records.point.host_queue(self.host)
        return f"{self.host} has a queue of its own ({queue})" if queue else ""

    @cached_property
    def backlog(self) -> str:
        """Why TCP took packets later than they came, several at a time; "": it did not, by what its kernel counts."""
        counted = self.records.snmp(self.host).get("TcpExt.TCPBacklogCoalesce")
        text = f"a program of {self.host} had the socket at times, and packets waited (TcpExt.TCPBacklogCoalesce)"
        return text if counted else ""

    @cached_property
    def shared(self) -> str:
        """Why an application of the host may have had to wait for its turn; "": virtual time waited for it."""
        others = [flow for flow in self.records.point.flows if flow.name != self.flow and self.host in flow.ends]
        spins = next((flow for flow in others if self.exact and flow.generator != GENERATOR), None)
        text = "may have had the processor, reading the clock, which moves it, while others waited"
        return f"{spins.generator} of {spins.name} {text}" if spins else ""

    @cached_property
    def reads_until_ns(self) -> int:
        """When a program other than tgen, such as iperf3, has its results to write, and reads what comes later."""
        point = self.records.point
        flow = point.flow(self.flow)
        return point.end_ns(flow) if flow and flow.generator != GENERATOR else np.iinfo(np.int64).max

    @cached_property
    def at_once_ns(self) -> int:
        """Packets sent at once leave within this time: below every timer of TCP, above what a host takes."""
        return 100_000 if self.exact else 10_000_000

    @cached_property
    def incomplete(self) -> str:
        """Why TCP may not have kept all packets that arrive; "": it has."""
        texts = [str(values["fate"]) for values in self.records.point.settings.values() if "fate" in values]
        if any(fate.action in UNSUMMED and fate.flow == self.flow for text in texts for fate in parse(text)):
            return "packets are corrupted on the way"
        counted = self.records.snmp(self.host)
        dropped = [(name, why) for name, why in _DROPPED.items() if counted.get(f"TcpExt.{name}")]
        return f"{self.host} {dropped[0][1]} (TcpExt.{dropped[0][0]})" if dropped else ""

    @cached_property
    def board(self) -> Scoreboard:
        """When each piece of what the host sent was transmitted and acknowledged."""
        return Scoreboard(self)

    @cached_property
    def reading_ns(self) -> Ints:
        """For each row how long an application may still read what filled gaps set free within the last ms, at 8 GB/s.

        It has the socket then, so that packets wait in the socket's backlog, and are answered when it has read.
        """
        fills = ~self.out & (self.arrived_to > np.maximum(self.rcv_nxt, self.end))
        if not fills.any():
            return np.zeros(len(self), np.int64)
        freed = np.where(fills, self.arrived_to - self.end, 0)
        total = self.count(freed, fills) + freed
        return np.asarray((total - np.maximum(self.settled(total, 1_000_000), 0)) // 8)

    def late(self, rows: Bools, answer: Ints, within_ns: int) -> Bools:
        """Rows of the mask whose answer (its row; -1: none) came later than this, while the connection was there."""
        time, broken = self["time_ns"], np.zeros(len(self), np.bool_)
        at = np.flatnonzero(rows)
        at = at[(answer[at] < 0) | (time[answer[at]] > time[at] + within_ns)]
        if len(at):
            broken[at] = True
            limit = time[at] + within_ns + self.reading_ns[at]
            reset, answer = self.following(self.has(RST), broken)[at], answer[at]
            over = (reset >= 0) & (time[reset] <= limit) | (self.latest(self.has(RST), broken)[at] >= 0)
            answered = (answer >= 0) & (time[answer] <= limit)
            broken[at] = ~answered & ~over & (limit < time.max())
        return broken

    @cached_property
    def mss(self) -> int:
        """The largest payload of a packet on the wire that the host sent; 0 without any."""
        return _largest(self, self.out)

    @cached_property
    def peer_mss(self) -> int:
        """Likewise of those that it received."""
        return _largest(self, ~self.out)

    @cached_property
    def events(self) -> dict[str, Array]:
        """The kernel's own trace of the host's TCP (columns of TCP_EVENTS as numbers, `event` by its name's place in
        TCP_EVENT_NAMES), ordered by connection and then by time; {} without."""
        table = self.records.tcp_events
        if table is None or not table.num_rows:
            return {}
        (flow, flows), (place, places) = codes_of(table, "flow"), codes_of(table, "where")
        if self.flow not in flows or self.host not in places:
            return {}
        source, sources = codes_of(table, "source")
        kernel = source == sources.index("kernel") if "kernel" in sources else np.zeros(len(source), np.bool_)
        rows = np.flatnonzero((flow == flows.index(self.flow)) & (place == places.index(self.host)) & kernel)
        if not len(rows):
            return {}
        rows = rows[np.argsort(numbers_of(table, "conn")[rows], kind="stable")]
        others = {"flow", "where", "event", "source", *SENDER_COLUMNS} - {"limited_by", "pacing_rate_bps"}
        names = [name for name in table.schema.names if name not in others]
        columns = {name: numbers_of(table, name)[rows].astype(np.int64) for name in names}
        event, kinds = codes_of(table, "event")
        number = np.array([TCP_EVENT_NAMES.index(kind) for kind in kinds] or [0])
        return {**columns, "event": number[event[rows]]}


def _largest(trace: Trace, of: Bools) -> int:
    some = of & trace.data
    if not some.any():
        return 0
    return int((-(-trace["length"][some] // np.maximum(trace["segs"][some], 1))).max())


def trace_of(records: Records, flow: str, end: int) -> Trace:
    """The packets of a flow at one of its ends (0: `from`).  Raises KeyError for a flow that the point lacks."""
    requested = records.point.flow(flow)
    if requested is None:
        raise KeyError(f"flow {flow}: want one of {', '.join(records.flows)}")
    host = requested.ends[end]
    (of, flows), (at, hosts) = records.codes("flow"), records.codes("where")
    if flow not in flows or host not in hosts:
        return Trace(records, flow, host, end, np.empty(0, np.int64))
    index = np.flatnonzero((of == flows.index(flow)) & (at == hosts.index(host)))
    return Trace(records, flow, host, end, index[np.argsort(records.values("conn", index), kind="stable")])
