# SPDX-License-Identifier: Apache-2.0
"""The requests of a flow as metrics and figures see them: how large, how long, and how long on an empty path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.core import path
from testctl.core.point import PointSpec, TimedFlow
from testctl.metrics.core.clocks import apart
from testctl.metrics.core.memo import once
from testctl.metrics.core.percentiles import rank_of
from testctl.metrics.core.spec import NAN, MetricInfo, Number
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import Array, Bools, Ints, codes_of, numbers_of

SMALL_BYTES, LARGE_BYTES = 10**5, 10**7
CLASSES = ("all", "small", "medium", "large")
"""Classes of requests by size: small ones are at most 100 kB, large ones above 10 MB, as in the evaluation of pFabric
(Alizadeh et al., SIGCOMM 2013, section 5)."""
WHICH = {"all": "all", "small": "up to 100 kB", "medium": "above 100 kB, up to 10 MB", "large": "above 10 MB"}
TAILS = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True)
class Completions:
    """The requests of a flow that ended, in the order in which they came.

    size       bytes of the larger direction, by which they are classed
    end_ns     relative to T0, by the clock of the host that read the last byte
    took_ns    from when it came to its last byte
    ideal_ns   on an empty path; NaN where no rate is set on it
    unknown    how many did not end, or took less than the error of the hosts' clocks
    """

    size: Ints
    end_ns: Ints
    took_ns: Ints
    ideal_ns: Array
    unknown: int = 0

    @property
    def slowdown(self) -> Array:
        return np.asarray(self.took_ns / self.ideal_ns)

    def of_class(self, name: str) -> Bools:
        if name == "all":
            return np.ones(len(self.size), np.bool_)
        low, high = {"small": (0, SMALL_BYTES), "medium": (SMALL_BYTES, LARGE_BYTES), "large": (LARGE_BYTES, None)}[
            name
        ]
        return (self.size > low) & (self.size <= (high if high is not None else np.iinfo(np.int64).max))


@once
def completions(records: Records, flow: str) -> Completions | None:
    """The completions of a flow; None when it makes no requests."""
    timed = records.point.flow(flow)
    columns = requests_of(records, flow)
    if timed is None or columns is None:
        return None
    clocks = apart(view(records, flow))
    due, end, up, down = (columns[name] for name in ("due_ns", "end_ns", "up", "down"))
    took = end - due - np.where(down > 0, 0, clocks.offset_ns if clocks else 0)
    sure = (end >= 0) & (columns["begin_ns"] >= 0) & ((down > 0) | (took >= (clocks.error_ns if clocks else 0)))
    return Completions(
        size=np.maximum(up, down)[sure],
        end_ns=end[sure],
        took_ns=took[sure],
        ideal_ns=_ideals(records.point, timed, up[sure], down[sure]),
        unknown=int((~sure).sum()),
    )


@once
def requests_of(records: Records, flow: str) -> dict[str, Ints] | None:
    """The columns of a flow's requests; None when it makes none."""
    table = records.requests
    if table is None:
        return None
    codes, names = codes_of(table, "flow")
    if flow not in names:
        return None
    own = codes == names.index(flow)
    return {name: numbers_of(table, name)[own].astype(np.int64) for name in table.schema.names if name != "flow"}


def _ideals(point: PointSpec, flow: TimedFlow, up: Ints, down: Ints) -> Array:
    """Of each request: its bytes up, and then its bytes down, each on an empty path."""
    total = np.zeros(len(up))
    for sizes, back in ((up, False), (down, True)):
        if not sizes.any():
            continue
        way = path.empty_path(point, flow, back=back)
        if way is None:
            return np.full(len(up), NAN)
        wire = sizes + -(-sizes // way.segment) * way.overhead
        total += np.where(sizes > 0, way.delay_ns + wire * 8e9 / way.rate_bps, 0)
    return total


def infos(name: str, unit: str, what: str) -> tuple[MetricInfo, ...]:
    """Declares NAME_<class>_mean and NAME_<class>_<tail>, with the unit's suffix if it has one."""
    suffix = "_us" if unit else ""
    return tuple(
        MetricInfo(f"{name}_{size}_{part}{suffix}", unit, f"{what} of requests, {WHICH[size]}: {part}", "lower")
        for size in CLASSES
        for part in ("mean", *TAILS)
    )


def summarise(name: str, unit: str, completed: Completions | None, values: Array) -> dict[str, Number]:
    """The values that `infos` declares; NaN without requests of the class."""
    result: dict[str, Number] = {}
    for size in CLASSES:
        ordered = np.sort(values[completed.of_class(size)] if completed is not None else values[:0])
        suffix = "_us" if unit else ""
        result[f"{name}_{size}_mean{suffix}"] = float(ordered.mean()) if len(ordered) else NAN
        for tail, share in TAILS.items():
            value = float(ordered[rank_of(share, len(ordered))]) if len(ordered) else NAN
            result[f"{name}_{size}_{tail}{suffix}"] = value
    return result
