# SPDX-License-Identifier: Apache-2.0
"""What each figure of a point shows in a window of time, at most a few thousand values of it.

Every figure is {"lines": [{"name", "kind", "t", "y", "rows"}], "bucket_ns", …}: t in ns after the window's
`from`, y in the base unit (bit/s, bytes, ns, packets), rows how many records the line stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from testctl.records.schema import ACK, CE, DROPPED, SYN
from testctl.results import layout
from testctl.serve.derived import LATENCY, OWN_QUEUE, RTT
from testctl.serve.source import Flow, Source
from testctl.serve.thin import EXACT, Window, m4, round_width

if TYPE_CHECKING:
    import duckdb

MOST_LINES = 8
"""Flows or connections in one figure; more can't be told apart."""

_FINE = 10
"""Bins that make one bucket of the throughput figure: what its band is the least and the greatest of."""

_NO_THRESHOLD = 2**31 - 1


@dataclass(frozen=True)
class Asked:
    """A figure's question: of which point, which window, which connection, over which connection to DuckDB."""

    source: Source
    window: Window
    lane: tuple[str, int]
    cursor: duckdb.DuckDBPyConnection
    derived: Callable[[], pa.Table]

    @property
    def table(self) -> str:
        """The name of the table of packets."""
        assert self.source.packets is not None
        return self.source.packets.name

    @property
    def flow(self) -> Flow | None:
        """The flow of the chosen connection."""
        return self.source.flow(self.lane[0])


def throughput(asked: Asked) -> dict[str, Any]:
    """Rate of each flow on the wire; where a bucket is wide enough also its least and greatest tenth."""
    window = asked.window
    width = max(round_width(window.bucket * 2), 1000)
    fine = width // _FINE if width >= 100_000 else width
    base = window.low // width * width
    flows = asked.source.flows[:MOST_LINES]
    names = {flow.sink: flow.name for flow in flows}
    rows = asked.cursor.execute(
        f"""select role, b, sum(v), min(v), max(v), count(*) from (
              select role, (time_ns - {base}) // {width} as b, sum(wire_bytes) as v from {asked.table}
              where time_ns >= {base} and time_ns < {window.high} and role in ({_list(names)})
              group by role, b, (time_ns - {base}) // {fine})
            group by role, b order by role, b"""
    ).fetchnumpy()
    bins = -(-(min(window.high, asked.source.last_ns + 1) - base) // width)
    first = max(-base // width, 0)
    lines = []
    for flow in flows:
        mine = np.asarray(rows["role"]) == flow.sink
        at, sums, low, high, count = (np.asarray(column)[mine] for column in list(rows.values())[1:])
        rate, least, most = (np.zeros(max(bins, 0)) for _ in range(3))
        inside = (at < bins) & (at >= 0)
        rate[at[inside]] = sums[inside] * 8e9 / width
        least[at[inside]] = np.where(count[inside] < width // fine, 0, low[inside]) * 8e9 / fine
        most[at[inside]] = high[inside] * 8e9 / fine
        line = {"name": flow.name, "kind": "rate", "t0": base + first * width - window.from_ns, "dt": width}
        line |= {"y": _numbers(rate[first:]), "rows": int(sums.sum())}
        if fine < width:
            line |= {"least": _numbers(least[first:]), "most": _numbers(most[first:])}
        lines.append(line)
    left_out = len(asked.source.flows) - len(flows)
    return {"lines": lines, "bucket_ns": width, "fine_ns": fine, "left_out": left_out}


_KINDS = ("data", "retransmission", "ACK", "dropped", "marked CE")


def sequence(asked: Asked) -> dict[str, Any]:
    """Sequence numbers of one connection: data, ACKs, retransmissions, drops, CE marks; each packet if few."""
    flow = asked.flow
    if flow is None:
        return {"lines": [], "bucket_ns": asked.window.bucket}
    found = m4(asked.cursor, _sequence_rows(asked, flow), (), asked.window)
    if sum(rows for _, _, rows in found.values()) <= EXACT:
        return {"lines": _one_by_one(asked, flow), "bucket_ns": 0}
    lines = [_line(asked.window, name, name, *found[name]) for name in _KINDS if name in found]
    return {"lines": lines, "bucket_ns": asked.window.bucket}


def _sequence_rows(asked: Asked, flow: Flow, columns: str = "") -> str:
    """A query of (line, t, y, r, …columns) over the chosen connection."""
    switches = [role for role in asked.source.ports if _way(asked, role) == (flow.name, flow.direction)]
    into = flow.roles.get("into", -1)
    return f"""
        select case when role = {flow.data} and length > 0
                            then if(retrans, '{_KINDS[1]}', '{_KINDS[0]}')
                            when role = {flow.acks} and (flags & {ACK | SYN}) = {ACK} then '{_KINDS[2]}'
                            when role in ({_list(switches)}) and fate in ({_list(DROPPED)}) then '{_KINDS[3]}'
                            when role = {into} and ecn = {CE} and length > 0 then '{_KINDS[4]}' end as line,
               time_ns as t, if(role = {flow.acks}, ack, seq + length) as y, r {columns}
        from {asked.table}
        where conn = {asked.lane[1]} and time_ns >= {asked.window.low} and time_ns < {asked.window.high}
              and role in ({_list([flow.data, flow.acks, into, *switches])})"""


def _one_by_one(asked: Asked, flow: Flow) -> list[dict[str, Any]]:
    query = _sequence_rows(asked, flow, ", length, flags, ecn")
    rows = asked.cursor.execute(f"select * from ({query}) where line is not null order by r").fetchnumpy()
    names = np.asarray(rows["line"], dtype=object)
    lines = []
    for name in _KINDS:
        mine = names == name
        if mine.any():
            t, y = np.asarray(rows["t"])[mine], np.asarray(rows["y"])[mine]
            line = _line(asked.window, name, name, t, y, int(mine.sum()))
            lines.append(line | {key: np.asarray(rows[key])[mine].tolist() for key in ("length", "flags", "ecn")})
    return lines


def _way(asked: Asked, role: int) -> tuple[str, int]:
    """(flow, direction) of a role's packets."""
    assert asked.source.packets is not None
    _, flow, direction, _ = asked.source.packets.keys[role]
    return flow, direction


def queue(asked: Asked) -> dict[str, Any]:
    """Bytes that packets found waiting at the switch ports of their way."""
    ports = asked.source.ports
    if not ports:
        return {"lines": [], "bucket_ns": asked.window.bucket}
    cases = " ".join(f"when {role} then {number}" for number, role in enumerate(ports))
    query = f"""select case role {cases} end as line, time_ns as t, queue_bytes as y, r from {asked.table}
                where role in ({_list(ports)}) and queue_bytes >= 0
                      and time_ns >= {asked.window.low} and time_ns < {asked.window.high}"""
    found = m4(asked.cursor, query, (), asked.window)
    names = list(ports.values())
    return _thinned(asked, {names[int(number)]: line for number, line in found.items()})


def latency(asked: Asked) -> dict[str, Any]:
    """One-way latency of every data packet, at its departure."""
    return _of_derived(asked, LATENCY, "")


def rtt(asked: Asked) -> dict[str, Any]:
    """Round trips of the chosen connection: data packet to the ACK that covers it, when the ACK comes."""
    return _of_derived(asked, RTT, "{}/{}".format(*asked.lane))


def own_queue(asked: Asked) -> dict[str, Any]:
    """Bytes that TCP had handed down and that had not left the sender."""
    return _of_derived(asked, OWN_QUEUE, "")


def _of_derived(asked: Asked, series: str, line: str) -> dict[str, Any]:
    asked.cursor.register("derived", asked.derived())
    query = "select line::varchar as line, t, y, r from derived where series = ? and (? = '' or line = ?)"
    return _thinned(asked, m4(asked.cursor, query, [series, line, line], asked.window))


def cwnd(asked: Asked) -> dict[str, Any]:
    """Congestion window and slow-start threshold of the chosen connection, of the kernel's trace or of tcp_info."""
    flow = asked.flow
    traced = asked.source.files.get(layout.TCP_EVENTS)
    sampled = asked.source.files.get(layout.TCP_INFO)
    path, names = (traced, ("cwnd", "ssthresh")) if traced else (sampled, ("snd_cwnd", "snd_ssthresh"))
    if flow is None or path is None:
        return {"lines": [], "bucket_ns": asked.window.bucket}
    own = 'from read_parquet(?, file_row_number = true) where flow = ? and conn = ? and "where" = ?'
    mine = [str(path), *asked.lane, flow.sender]
    window = asked.window
    near = asked.cursor.execute(
        f"""select max(time_ns) filter (time_ns < {window.low}), min(time_ns) filter (time_ns >= {window.high})
            {own}""",
        mine,
    ).fetchone()
    before, after = near if near is not None else (None, None)
    # The sample before and the one behind are wanted too: between samples the line goes on.
    wide = replace(window, reach=(before if before is not None else window.low, (after or window.high) + 1))
    query = " union all ".join(
        f"""select '{said}' as line, time_ns as t, "{name}" as y, file_row_number as r
            {own} and "{name}" >= 0 and "{name}" < {_NO_THRESHOLD}"""
        for said, name in (("window", names[0]), ("slow-start threshold", names[1]))
    )
    found = m4(asked.cursor, query, [*mine, *mine], wide)
    return _thinned(asked, found) | {"traced": traced is not None}


FIGURES: dict[str, Callable[[Asked], dict[str, Any]]] = {
    "throughput": throughput,
    "sequence": sequence,
    "queue": queue,
    "cwnd": cwnd,
    "latency": latency,
    "rtt": rtt,
    "own_queue": own_queue,
}


def there(source: Source) -> list[str]:
    """The figures that a point's records can fill."""
    if not source.flows:
        return []
    both = any({"out", "into"} <= flow.roles.keys() for flow in source.flows)
    acked = any({"out", "acks_in"} <= flow.roles.keys() for flow in source.flows)
    sampled = layout.TCP_INFO in source.files
    has = {
        "throughput": True,
        "sequence": True,
        "queue": bool(source.ports),
        "cwnd": sampled or layout.TCP_EVENTS in source.files,
        "latency": both,
        "rtt": acked,
        "own_queue": sampled and any("out" in flow.roles for flow in source.flows),
    }
    return [name for name, found in has.items() if found]


def _thinned(asked: Asked, found: dict[str, Any]) -> dict[str, Any]:
    lines = [_line(asked.window, name, "value", *found[name]) for name in list(found)[:MOST_LINES]]
    return {"lines": lines, "bucket_ns": asked.window.bucket, "left_out": max(len(found) - MOST_LINES, 0)}


def _line(
    window: Window, name: str, kind: str, t: np.ndarray[Any, Any], y: np.ndarray[Any, Any], rows: int
) -> dict[str, Any]:
    return {"name": name, "kind": kind, "t": (t - window.from_ns).tolist(), "y": _numbers(y), "rows": rows}


def _numbers(values: np.ndarray[Any, Any]) -> list[float | int]:
    rounded = np.round(values).astype(np.int64)
    found: list[float | int] = rounded.tolist()
    return found


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in numbers) or "-1"
