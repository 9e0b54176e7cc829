# SPDX-License-Identifier: Apache-2.0
"""Reads what became of a flow's requests: the times of both ends (agents/tgen/workload_result.c), and the requests
that the point makes, which are drawn again.

A file holds, for each request in the order of the schedule, when it began and when it ended: absolute ns, 64 bits each,
little-endian; 0 where that end does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from testctl_agent.spec import workload

from testctl.core.outcome import FlowOutcome, Outcome
from testctl.core.point import PointSpec, TimedFlow
from testctl.records.errors import RecordsError
from testctl.records.files import read_records
from testctl.records.schema import REQUESTS, Array, Ints, names_column, table_of

_TIMES = np.dtype([("begin_ns", "<i8"), ("end_ns", "<i8")])
_FILE = "times.bin"


def read_requests(raw: Path, point: PointSpec, outcome: Outcome) -> tuple[pa.Table | None, list[str]]:
    """The table (schema REQUESTS, by flow and in the schedule's order; None: no flow asks) and notes.

    Raises RecordsError for a file that does not have as many requests as the point.
    """
    asking = [flow for flow in point.flows if flow.asks]
    if not asking:
        return None, []
    notes: list[str] = []
    parts = [_of_flow(raw, flow, point, outcome, notes) for flow in asking]
    columns: dict[str, Array] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    codes = np.repeat(np.arange(len(parts), dtype=np.int16), [len(part["request"]) for part in parts])
    named = {"flow": names_column(codes, [flow.name for flow in asking])}
    return table_of(REQUESTS, columns | named), notes


def _of_flow(raw: Path, flow: TimedFlow, point: PointSpec, outcome: Outcome, notes: list[str]) -> dict[str, Array]:
    requests = workload.requests(flow.options, workload.stream_of(point.seed, flow.name, flow.options))
    ends = outcome.flows.get(flow.name, FlowOutcome())
    start_ns = int(ends.client.raw.get("start_ns") or outcome.t0_ns + flow.start_ns) - outcome.t0_ns
    client = _times(raw / flow.source / f"{flow.name}-client", len(requests), outcome.t0_ns, notes)
    server = _times(raw / flow.sink / f"{flow.name}-server", len(requests), outcome.t0_ns, notes)
    down = _column(requests, "down")
    end_ns = np.where(down > 0, client["end_ns"], server["end_ns"])
    due_ns = start_ns + _column(requests, "at_ns")
    if workload.thinks(flow.options):
        # A request follows the answer on its connection; connections take turns in the schedule.
        before = end_ns[: -flow.parallel]
        after = np.where(before >= 0, before + _column(requests, "think_ns")[flow.parallel :], -1)
        due_ns = np.concatenate([due_ns[: flow.parallel], after])
    return {
        "request": np.arange(len(requests)),
        "conn": _column(requests, "conn"),
        "up": _column(requests, "up"),
        "down": down,
        "due_ns": due_ns,
        "begin_ns": client["begin_ns"],
        "end_ns": end_ns,
    }


def _column(requests: Sequence[workload.Request], name: str) -> Ints:
    return np.array([getattr(request, name) for request in requests], np.int64)


def _times(directory: Path, count: int, t0_ns: int, notes: list[str]) -> dict[str, Ints]:
    """Relative to T0; -1 where they are not known."""
    path = directory / _FILE
    if not path.is_file():
        notes.append(f"{directory.name}: there are no times of its requests")
        return {name: np.full(count, -1, np.int64) for name in _TIMES.names or ()}
    times, cut = read_records(path, _TIMES)
    if len(times) != count or cut:
        raise RecordsError(path, f"want the times of {count} requests; got {len(times)}")
    return {name: np.where(times[name] > 0, times[name] - t0_ns, -1) for name in _TIMES.names or ()}
