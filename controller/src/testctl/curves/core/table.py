# SPDX-License-Identifier: Apache-2.0
"""A curve as a table over time, every sample of it or in bins: `testctl series`, the library, InfluxDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.registry import curves
from testctl.curves.core.spec import CurveSpec
from testctl.metrics.core.bins import dense_bins
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import Ints, numbers_of

MAX_BINS = 10_000_000
"""Greatest number of bins of a sum, which includes empty bins."""


def series(records: Records, flow: str, name: str, bin_ns: int) -> pa.Table:
    """A curve of a flow; its columns are described at `compute` of testctl/curves/<name>.py, its bins at its SPEC.

    bin_ns 0 gives every sample (not where a bin has the sum).  Raises KeyError for an unknown curve or flow,
    ValueError for a bin width that can't be.
    """
    if name not in curves():
        raise KeyError(f"series {name}: want one of {', '.join(curves())}")
    if bin_ns < 0:
        raise ValueError(f"want a bin width of 0 ns or more; got {bin_ns}")
    curve = curves()[name]
    table, spec = curve.compute(view(records, flow)), curve.spec
    if spec.binned == "sum":
        return _sum(table, spec, bin_ns)
    if spec.binned == "mean":
        return _mean(table, spec, bin_ns)
    if bin_ns == 0 or not table.num_rows:
        return table
    return _last(table, spec, bin_ns) if spec.binned == "last" else _grouped(table, spec, bin_ns)


def _sum(table: pa.Table, spec: CurveSpec, bin_ns: int) -> pa.Table:
    """time_ns (begin of the bin), the sum, and its rate as bps; bins without samples too."""
    time_ns = numbers_of(table, "time_ns")
    if bin_ns and len(time_ns) and (count := int(time_ns[-1] - time_ns[0]) // bin_ns) > MAX_BINS:
        raise ValueError(f"want a bin width that gives at most {MAX_BINS} bins; {bin_ns} ns gives {count}")
    edges, sums = dense_bins(time_ns, numbers_of(table, spec.value), bin_ns)
    return pa.table({"time_ns": edges[:-1], spec.value: sums, "bps": sums * 8e9 / bin_ns})


def _mean(table: pa.Table, spec: CurveSpec, bin_ns: int) -> pa.Table:
    """time_ns, the mean and the largest of every bin that has samples, in µs."""
    time_ns, value = numbers_of(table, "time_ns"), numbers_of(table, spec.value)
    order = np.argsort(time_ns, kind="stable")
    time_ns, mean = time_ns[order], value[order] / 1e3
    most = mean
    if bin_ns > 0 and len(time_ns):
        number, first = _starts(time_ns, bin_ns)
        most = np.maximum.reduceat(mean, first)
        mean = np.add.reduceat(mean, first) / np.diff(np.append(first, len(number)))
        time_ns = number[first] * bin_ns
    name = spec.value.replace("_ns", "_us")
    return pa.table({"time_ns": time_ns, name: mean, f"{name}_max": most})


def _grouped(table: pa.Table, spec: CurveSpec, bin_ns: int) -> pa.Table:
    """The largest value ("most") or the mean ("average") of each bin and group, and the first value of other columns;
    rows of a group are together, in order of time."""
    number, first = _starts(numbers_of(table, "time_ns"), bin_ns, _group(table, spec))
    column = numbers_of(table, spec.value)
    if spec.binned == "most":
        value = np.maximum.reduceat(column, first)
    else:
        value = np.add.reduceat(column, first) / np.diff(np.append(first, len(number)))
    columns = {"time_ns": pa.array(number[first] * bin_ns), spec.value: pa.array(value)}
    kept = table.take(pa.array(first))
    return pa.table({name: columns.get(name, kept[name]) for name in table.schema.names})


def _last(table: pa.Table, spec: CurveSpec, bin_ns: int) -> pa.Table:
    """The last row of each bin and group; rows are in order of time."""
    number, group = numbers_of(table, "time_ns") // bin_ns, _group(table, spec)
    order = np.lexsort((number, group))
    last = np.append((np.diff(number[order]) != 0) | (np.diff(group[order]) != 0), True)
    return table.take(pa.array(np.sort(order[last])))


def _starts(time_ns: Ints, bin_ns: int, group: Ints | None = None) -> tuple[Ints, Ints]:
    """(bin number of each sample, index of the first row of each bin or group)."""
    number = time_ns // bin_ns
    begins = np.diff(number, prepend=number[0] - 1) != 0
    if group is not None:
        begins |= np.diff(group, prepend=group[0]) != 0
    return number, np.flatnonzero(begins)


def _group(table: pa.Table, spec: CurveSpec) -> Ints:
    """One number for the values of the columns `by`."""
    groups = np.zeros(table.num_rows, np.int64)
    for name in spec.by:
        column = table[name].combine_chunks()
        codes = column.indices if pa.types.is_dictionary(column.type) else column
        groups = groups * (1 << 16) + codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return groups
