# SPDX-License-Identifier: Apache-2.0
"""SQL over all points of a run, by DuckDB on the Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from testctl.results import layout

if TYPE_CHECKING:
    import duckdb

    from testctl.results.reader import Run


def connect(run: Run) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection in memory with the run's tables.

    points (point, verdict, reason, digest, wall_s, virtual_s), tuples (point, entity, parameter,
    value as text), metrics (point, flow, metric, value), and, where some point has them, packets,
    tcp_info, tcp_events, requests and stalls: the records of all points with a column `point`.
    """
    import duckdb  # only here: it costs 0.1 s to load

    connection = duckdb.connect()
    for name, table in (("points", _points(run)), ("tuples", _tuples(run)), ("metrics", _metrics(run))):
        connection.register("given", table)
        connection.execute(f"create table {name} as select * from given")
        connection.unregister("given")
    records = {"tcp_info": layout.TCP_INFO, "tcp_events": layout.TCP_EVENTS}
    records |= {"requests": layout.REQUESTS, "stalls": layout.STALLS}
    for name, file in {"packets": layout.PACKETS, **records}.items():
        files = [point.path / file for point in run.points if (point.path / file).exists()]
        listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in files)
        if files:
            connection.execute(
                f"create view {name} as select parse_filename(parse_path(filename)[-2]) as point, * exclude (filename)"
                f" from read_parquet([{listed}], filename = true, union_by_name = true)"
            )
    return connection


def _points(run: Run) -> pa.Table:
    keys = ("verdict", "reason", "digest", "wall_s", "virtual_s")
    text, number = pa.string(), pa.float64()
    schema = pa.schema([("point", text), *((key, number if key.endswith("_s") else text) for key in keys)])
    rows = [{"point": point.id, **{key: getattr(point, key) for key in keys}} for point in run.points]
    return pa.Table.from_pylist(rows, schema)


def _tuples(run: Run) -> pa.Table:
    schema = pa.schema([(name, pa.string()) for name in ("point", "entity", "parameter", "value")])
    rows = [
        {"point": point.id, "entity": entity, "parameter": parameter, "value": str(value)}
        for point in run.points
        for entity, parameter, value in point.tuples
    ]
    return pa.Table.from_pylist(rows, schema)


def _metrics(run: Run) -> pa.Table:
    schema = pa.schema(
        [("point", pa.string()), ("flow", pa.string()), ("metric", pa.string()), ("value", pa.float64())]
    )
    rows = [
        {"point": point.id, "flow": flow, "metric": metric, "value": float(value)}
        for point in run.points
        for flow, values in point.metrics.items()
        for metric, value in values.items()
        if isinstance(value, int | float)
    ]
    return pa.Table.from_pylist(rows, schema)
