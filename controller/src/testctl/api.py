# SPDX-License-Identifier: Apache-2.0
"""Runs for Python: points, records and series as pandas or Arrow tables (docs/library.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testctl_agent.spec.errors import PlanError

from testctl.core.point import POINT_WIDE
from testctl.core.quantities import numeric
from testctl.core.words import counted
from testctl.records import read_parquet
from testctl.results import Run as RunFiles
from testctl.results import RunPoint, layout, load_run
from testctl.system.text import first_of

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa

    from testctl.charts import Chart
    from testctl.charts.sweep_data import Sweep
    from testctl.records import Records

SHOWN = 8
"""Names listed in an error, at most."""


def load(run: str | Path) -> Run:
    """A run's directory, such as "results/latest".

    Points and metrics are read now, records when they are asked for.  Raises PlanError, which says
    what there is when something is not there.
    """
    return Run(load_run(Path(run)))


def load_all(results: str | Path = "results", plan: str = "") -> pd.DataFrame:
    """The points of all complete runs of a results directory, oldest run first, as `Run.points` has them.

    Columns before those: `run` (its directory's name), `plan` and `started` (UTC).  plan: only runs of this plan.
    Raises PlanError where no run is, and for a run that can't be read, naming it.
    """
    import pandas as pd

    root = Path(results)
    frames = []
    runs = [load(path.parent) for path in root.glob(f"*/{layout.SUMMARY}") if _is_run(path.parent)]
    for found in sorted(runs, key=lambda run: (str(run.summary.get("started")), run.name)):
        name = str(found.summary.get("plan", ""))
        if not plan or name == plan:
            started = str(found.summary.get("started"))  # a foreign run's may be no time
            about = {"run": found.name, "plan": name, "started": pd.to_datetime(started, errors="coerce")}
            frames.append(pd.concat([pd.DataFrame(about, index=found.points.index), found.points], axis=1))
    if not frames:
        raise PlanError(f"{root}: want complete runs{f' of plan {plan}' if plan else ''}; there is none")
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class Run:
    """A run.  `files` reads what is not a table: states, plan, versions."""

    files: RunFiles

    @property
    def name(self) -> str:
        return self.files.name

    @property
    def digest(self) -> str:
        """In the lab the same in every run of the same plan and code."""
        return self.files.digest

    @property
    def summary(self) -> Mapping[str, Any]:
        """summary.json; {} while the run is in progress."""
        return self.files.summary

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row a point and flow.

        `point` (its id), `flow`, `verdict`, `reason`, `digest`, `wall_s`, `virtual_s`; each tuple of the plan as
        `entity.parameter`, as written, whole numbers as such; quantities also as numbers, in
        `entity.parameter_s`, `_bps` or `_bytes`, NaN where a point has none; each metric by its name, metrics of the
        whole point in the rows of all its flows.  A point without metrics has rows too.
        """
        import pandas as pd

        rows = [row for point in self.files.points for row in _rows(point)]
        frame = pd.DataFrame(rows)
        for name in {f"{entity}.{parameter}" for point in self.files.points for entity, parameter, _ in point.tuples}:
            frame[name] = _numbers(frame[name])
        return _with_quantities(frame, [name for name in frame.columns if "." in name])

    def sweep(
        self, metric: str, x: str, by: str = "", facet: str = "", *, flow: str = "", to_arrow: bool = False
    ) -> Any:
        """A metric over a swept parameter, "entity.parameter": one row a value of x, of `by` and of `facet`.

        With "flow" for `by` (or `facet`, `x`) there is a row for each flow.

        Columns: those of the parameters named, as written; `x`, that of x as a number in its base unit (NaN for a
        word); `y` the median of the points, `lo` and `hi` the least and the greatest, `n` how many, `missing` how many
        have no value.  flow: without one, of all flows together.  Raises PlanError, naming what there is.
        """
        from testctl.plan.sweep_figures import HEATMAP
        from testctl.report.sweep import sweep_of
        from testctl.report.sweep_choice import asked_spec

        kind = HEATMAP if by else "metric"  # of both the numbers are the same, and a heatmap may have more of `by`
        spec = asked_spec(self.files.points, kind, metric, x=x, by=by, facet=facet, flow=flow)
        return _as(_sweep_table(sweep_of(spec, self.files.points)), to_arrow)

    def figure(
        self, metric: str, x: str = "", by: str = "", facet: str = "", *, flow: str = "", kind: str = "metric"
    ) -> Chart:
        """The same as a figure, which a notebook shows and `save` writes.

        kind: metric, box, heatmap (with `by`) or cdf (without x).  Raises PlanError, naming what there is.
        """
        from testctl.charts.swept import swept
        from testctl.report.sweep import sweep_of
        from testctl.report.sweep_choice import asked_spec

        spec = asked_spec(self.files.points, kind, metric, x=x, by=by, facet=facet, flow=flow)
        return swept(sweep_of(spec, self.files.points))

    def to_arrow(self) -> pa.Table:
        """`points` as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pandas(self.points, preserve_index=False)

    def point(self, id: str) -> Point:
        """The point whose id starts so.  Raises PlanError."""
        try:
            return Point(self.files.point(id))
        except PlanError as error:
            raise PlanError(f"{error}; there are {_some([point.id for point in self.files.points])}") from error

    def sql(self) -> duckdb.DuckDBPyConnection:
        """DuckDB over all records of all points: points, tuples, metrics, packets, tcp_info, tcp_events, requests,
        stalls."""
        from testctl.results import connect

        return connect(self.files)

    def __repr__(self) -> str:
        return f"<run {self.name}: {counted(len(self.files.points), 'point')}, digest {self.digest[:12]}>"


@dataclass(frozen=True)
class Point:
    """One point of a run.  `files` reads what is not a table.

    Tables are pandas DataFrames, or Arrow ones with `to_arrow`.
    """

    files: RunPoint

    @property
    def id(self) -> str:
        return self.files.id

    @property
    def verdict(self) -> str:
        return self.files.verdict

    @property
    def tuples(self) -> dict[str, Any]:
        """{"entity.parameter": value} as the plan says it."""
        return {f"{entity}.{parameter}": value for entity, parameter, value in self.files.tuples}

    @property
    def flows(self) -> tuple[str, ...]:
        return tuple(str(flow["name"]) for flow in self.files.point.get("flows", []))

    @property
    def metrics(self) -> Mapping[str, Mapping[str, Any]]:
        """{flow or "*": {metric: value}}."""
        return self.files.metrics

    def packets(self, columns: Sequence[str] | None = None, *, to_arrow: bool = False) -> Any:
        """One row a packet captured at a host, or handled by a switch; only some columns are quicker to read."""
        return self._table("packets", columns, to_arrow)

    def tcp_info(self, columns: Sequence[str] | None = None, *, to_arrow: bool = False) -> Any:
        """One row a sample of a socket."""
        return self._table("tcp_info", columns, to_arrow)

    def tcp_events(self, columns: Sequence[str] | None = None, *, to_arrow: bool = False) -> Any:
        """One row an ACK, a transmission or a timeout of a host with `tcp_events` on."""
        return self._table("tcp_events", columns, to_arrow)

    def requests(self, columns: Sequence[str] | None = None, *, to_arrow: bool = False) -> Any:
        """One row a request of a flow that makes some: its bytes, when it came, began and ended."""
        return self._table("requests", columns, to_arrow)

    def stalls(self, columns: Sequence[str] | None = None, *, to_arrow: bool = False) -> Any:
        """One row a silence, with its cause."""
        return self._table("stalls", columns, to_arrow)

    def series(self, flow: str | None, metric: str, bin: str = "10ms", *, to_arrow: bool = False) -> Any:
        """A metric of a flow over time, `time_ns` from the traffic's begin, in bins such as "1ms"; as `testctl series`.

        flow: None for the only one there is, or for a metric of the whole point

        Raises PlanError, naming the flows or metrics there are.
        """
        from testctl_agent.spec.units import Duration

        from testctl.curves import curves, series

        whole = metric in curves() and curves()[metric].spec.whole
        if flow is None and (whole or len(self.flows) == 1):
            flow = next(iter(self.flows), None)
        if flow not in self.flows:
            got = repr(flow) if flow else "none"
            raise PlanError(f"point {self.id}: want a flow of {_some(self.flows)}; got {got}")
        if metric not in curves():
            raise PlanError(f"point {self.id}: want a series of {', '.join(curves())}; got {metric!r}")
        try:
            width_ns = int(Duration.parse(bin))
        except ValueError as error:
            raise PlanError(f"bin: {error}") from error
        if width_ns < 1:
            raise PlanError(f"bin: want at least 1ns; got {bin!r}")
        records = self._records()
        try:
            return _as(series(records, flow, metric, width_ns), to_arrow)
        except ValueError as error:
            raise PlanError(f"bin: {error}") from error

    def figure(
        self, name: str, flow: str = "", conn: int = 0, *, from_s: float = 0.0, to_s: float | None = None
    ) -> Chart:
        """A figure over time, as `testctl serve` draws it, such as "throughput", "seq" or "cwnd".

        flow, conn    of a figure of one connection; without a flow the first
        from_s, to_s  the time that is shown, in seconds from the traffic's begin; by default all of it
        Raises PlanError, naming the figures or flows there are.
        """
        from testctl.charts.over_time import over_time
        from testctl.curves import Window, figures, lanes, shown_ns

        records = self._records()
        if name not in figures(records):
            raise PlanError(f"point {self.id}: want a figure of {', '.join(figures(records))}; got {name!r}")
        chosen = [lane for lane in lanes(records) if lane == (flow or lane[0], conn)]
        if not chosen:
            raise PlanError(f"point {self.id}: want a connection of {_some([f'{f}/{c}' for f, c in lanes(records)])}; "
                            f"got {flow}/{conn}")  # fmt: skip
        end_ns = shown_ns(self.files.point, int(records.column("time_ns").max()))
        window = Window(round(from_s * 1e9), end_ns if to_s is None else round(to_s * 1e9), 600)
        if window.span < 1:
            raise PlanError(f"point {self.id}: want from_s below to_s; got {from_s} and {to_s}")
        return over_time(records, name, chosen, window, singly=True)

    def _records(self) -> Records:
        """Its records.  Raises PlanError, with the reason why it has none."""
        records = self.files.records()
        if records is None:
            measured = self.verdict in ("pass", "fail")
            absent = f"packets.parquet or another file of its records is not in {self.files.path}"
            why = absent if measured else f"it is {self.verdict}: {self.files.reason}"
            raise PlanError(f"point {self.id} has no records: {why}")
        return records

    def _table(self, name: str, columns: Sequence[str] | None, to_arrow: bool) -> Any:
        path = self.files.path / f"{name}.parquet"
        if not path.exists():
            there = [found.stem for found in sorted(self.files.path.glob("*.parquet"))]
            why = f"it is {self.verdict}: {self.files.reason}" if not there else f"it has {_some(there)}"
            raise PlanError(f"point {self.id} has no {name}; {why}")
        import pyarrow.parquet as pq

        if columns is not None and (odd := sorted(set(columns) - set(known := pq.read_schema(path).names))):
            raise PlanError(f"point {self.id}, {name}: want columns of {', '.join(known)}; got {odd[0]!r}")
        return _as(read_parquet(path, columns), to_arrow)

    def __repr__(self) -> str:
        words = " ".join(f"{key}={value}" for key, value in self.tuples.items())
        return f"<point {self.id}: {self.verdict}: {words}>"


def _is_run(path: Path) -> bool:
    """Whether a directory is a complete run, and no link to one such as `latest`."""
    return not path.is_symlink() and not path.name.endswith(layout.IN_PROGRESS)


def _sweep_table(sweep: Sweep) -> pa.Table:
    import pyarrow as pa

    rows = []
    for panel in sweep.panels:
        for line in panel.lines:
            for index, cell in enumerate(line.cells):
                names = {sweep.facet.key: panel.name, sweep.by.key: line.name, sweep.x.key: sweep.x.values[index]}
                number = sweep.x.numbers[index] if sweep.x.numbers else None
                rows.append(
                    {key: name for key, name in names.items() if key}
                    | {"x": number, "y": cell.y, "lo": cell.lo, "hi": cell.hi, "n": cell.n, "missing": cell.missing}
                )
    kinds = dict.fromkeys(("x", "y", "lo", "hi"), pa.float64()) | dict.fromkeys(("n", "missing"), pa.int64())
    return pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]]))


def _rows(point: RunPoint) -> list[dict[str, Any]]:
    about = {
        "verdict": point.verdict,
        "reason": point.reason,
        "digest": point.digest,
        "wall_s": point.wall_s,
        "virtual_s": point.virtual_s,
        **{f"{entity}.{parameter}": value for entity, parameter, value in point.tuples},
    }
    wide = point.metrics.get(POINT_WIDE, {})
    flows = [flow for flow in point.metrics if flow != POINT_WIDE] or [f["name"] for f in point.point.get("flows", [])]
    return [{"point": point.id, "flow": flow, **about, **wide, **point.metrics.get(flow, {})} for flow in flows]


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column as numbers where each of its values is a whole one (6.1 and 6.12 are kernels)."""
    texts = column.astype(str)
    return column.astype("int64") if texts.str.fullmatch(r"-?\d{1,18}").all() else column


def _with_quantities(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The frame with a column of numbers after each of these whose values are quantities of one kind."""
    for name in names:
        there = frame[name].dropna().astype(str)
        numbers = numeric(list(there))
        if numbers is not None and numbers.suffix and name + numbers.suffix not in frame:
            of = dict(zip(there.index, numbers.values, strict=True))
            place = list(frame.columns).index(name) + 1
            frame.insert(place, name + numbers.suffix, [of.get(row, math.nan) for row in frame.index])
    return frame


def _as(table: pa.Table, to_arrow: bool) -> Any:
    return table if to_arrow else table.to_pandas()


def _some(names: Sequence[str]) -> str:
    return first_of(names, SHOWN) or "none"
