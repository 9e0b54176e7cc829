# SPDX-License-Identifier: Apache-2.0
"""A run's series as lines: every bin of every flow of every point, at the run's start plus the virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from testctl.curves import series
from testctl.results import Run, RunPoint
from testctl_agent.spec.units import Duration

from testctl_influx.line import head, line
from testctl_influx.measurements import MEASUREMENTS
from testctl_influx.rows import machine_tags, run_tags, started_ns, tag

_PREFIX = "series_"
_WRITTEN = tuple(name.removeprefix(_PREFIX) for name in MEASUREMENTS if name.startswith(_PREFIX))


def series_lines(run: Run, width: Duration) -> Iterator[str]:
    """The series and stalls of all points that have records, one point's records in memory at a time."""
    return filter(None, _lines(run, width))


def _lines(run: Run, width: Duration) -> Iterator[str | None]:
    for point in run.points:
        yield from _stall_lines(run, point)
        records = point.records()
        if records is None:
            continue
        for flow in records.flows:
            tags = _tags(run, point, flow)
            for name in _WRITTEN:
                table = series(records, flow, name, int(width))
                yield from _table_lines(name, tags | {"bin": str(width)}, table.to_pydict(), started_ns(run))


def _table_lines(
    name: str, tags: Mapping[str, str], columns: Mapping[str, list[Any]], start_ns: int
) -> Iterator[str | None]:
    spec = MEASUREMENTS[_PREFIX + name]
    own = [key for key in spec.tags if key in columns]
    heads: dict[tuple[Any, ...], str] = {}
    for index, time_ns in enumerate(columns["time_ns"]):
        key = tuple(columns[name][index] for name in own)
        if key not in heads:
            heads[key] = head(spec.name, {**tags, **dict(zip(own, map(tag, key), strict=True))})
        yield line(heads[key], {field: columns[field][index] for field in spec.fields}, start_ns + time_ns)


def _stall_lines(run: Run, point: RunPoint) -> Iterator[str | None]:
    table = point.stalls(["flow", "conn", "cause", "ended_by", "start_ns", "length_ns", "proof"])
    for row in table.to_pylist() if table is not None else ():
        tags = {**_tags(run, point, row["flow"]), **{key: tag(row[key]) for key in ("conn", "cause", "ended_by")}}
        fields = {"length_ms": row["length_ns"] / 1e6, "proof": row["proof"]}
        yield line(head("stalls", tags), fields, started_ns(run) + row["start_ns"])


def _tags(run: Run, point: RunPoint, flow: str) -> dict[str, str]:
    return {**run_tags(run), "point": point.id, "flow": tag(flow), **machine_tags(run, point, flow)}
