# SPDX-License-Identifier: Apache-2.0
"""Reads what became of a flow's requests: the times of both ends (agents/tgen/workload_result.c), beside the requests
that the point asks for, which are drawn again.

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
from testctl.records.schema import REQUESTS, Array, Ints, names_column

_TIMES = np.dtype([("begin_ns", "<i8"), ("end_ns", "<i8")])
_FILE = "times.bin"


def read_requests(raw: Path, point: PointSpec, outcome: Outcome) -> tuple[pa.Table | None, list[str]]:
    """The table (schema REQUESTS, by flow and in the schedule's order; None: no flow asks) and notes.

    Raises RecordsError for a file that has not as many requests as the point.
    """
    asking = [flow for flow in point.flows if flow.asks]
    if not asking:
        return None, []
    notes: list[str] = []
    parts = [_of_flow(raw, flow, point, outcome, notes) for flow in asking]
    columns: dict[str, Array] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    columns["flow"] = np.repeat(np.arange(len(parts), dtype=np.int16), [len(part["request"]) for part in parts])
    arrays = [
        names_column(columns["flow"], [flow.name for flow in asking])
        if field.name == "flow"
        else pa.array(columns[field.name]).cast(field.type)
        for field in REQUESTS
    ]
    return pa.table(arrays, schema=REQUESTS), notes


def _of_flow(raw: Path, flow: TimedFlow, point: PointSpec, outcome: Outcome, notes: list[str]) -> dict[str, Array]:
    asked = workload.requests(flow.options, workload.stream_of(point.seed, flow.name, flow.options))
    ends = outcome.flows.get(flow.name, FlowOutcome())
    start_ns = int(ends.client.raw.get("start_ns") or outcome.t0_ns + flow.start_ns) - outcome.t0_ns
    client = _times(raw / flow.source / f"{flow.name}-client", len(asked), outcome.t0_ns, notes)
    server = _times(raw / flow.sink / f"{flow.name}-server", len(asked), outcome.t0_ns, notes)
    down = _column(asked, "down")
    end_ns = np.where(down > 0, client["end_ns"], server["end_ns"])
    due_ns = start_ns + _column(asked, "at_ns")
    if workload.thinks(flow.options):
        due_ns = _after_thinking(due_ns, end_ns, asked, flow.parallel)
    return {
        "request": np.arange(len(asked)),
        "conn": _column(asked, "conn"),
        "up": _column(asked, "up"),
        "down": down,
        "due_ns": due_ns,
        "begin_ns": client["begin_ns"],
        "end_ns": end_ns,
    }


def _after_thinking(due_ns: Ints, end_ns: Ints, asked: Sequence[workload.Request], conns: int) -> Ints:
    """When requests came that follow an answer on their connection; connections take turns in the schedule."""
    before = end_ns[:-conns]
    after = np.where(before >= 0, before + _column(asked, "think_ns")[conns:], -1)
    return np.concatenate([due_ns[:conns], after])


def _column(asked: Sequence[workload.Request], name: str) -> Ints:
    return np.array([getattr(one, name) for one in asked], np.int64)


def _times(directory: Path, count: int, t0_ns: int, notes: list[str]) -> dict[str, Ints]:
    """Relative to T0; -1 where they are not known."""
    path = directory / _FILE
    if not path.is_file():
        notes.append(f"{directory.name}: there are no times of its requests")
        return {name: np.full(count, -1, np.int64) for name in _TIMES.names or ()}
    found, cut = read_records(path, _TIMES)
    if len(found) != count or cut:
        raise RecordsError(path, f"want the times of {count} requests; got {len(found)}")
    return {name: np.where(found[name] > 0, found[name] - t0_ns, -1) for name in _TIMES.names or ()}
