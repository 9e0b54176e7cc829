# SPDX-License-Identifier: Apache-2.0
"""Writes report.html: one self-contained file, with all text of a plan escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from testctl_agent.system import durable

from testctl.charts.style import VERDICT_LOOKS
from testctl.charts.swept import swept
from testctl.core.units import show_time
from testctl.report import packed as packing
from testctl.report.claims import claim_rows, claims_of
from testctl.report.embedded import COLUMNS, as_script, embedded
from testctl.report.factors import Factor, describe, factors
from testctl.report.failures import failure_lines, failures_first
from testctl.report.looks import looks, script, styles
from testctl.report.metrics import Column, columns, metric_table
from testctl.report.packed import deflated, packed
from testctl.report.provenance import lines
from testctl.report.response import declared
from testctl.report.sweep_choice import sweeps_of_run
from testctl.results import Run, RunPoint
from testctl.results.atomic import naming_path, write_text
from testctl.results.layout import FIGURES, PAPER, REPORT, VERDICTS
from testctl.system import checkout

TOGETHER = 20
"""Points whose details share a script element."""


def render_report(run: Run, data: Mapping[str, str | None] | None = None) -> str:
    """The page of a run.  `data`: point_data by point id, where the caller has it already."""
    varying, shown, table = factors(run.points), declared(run), columns(run.points, run.summary)
    sweeps = sweeps_of_run(run)
    blocks = data if data is not None else {point.id: point_data(point) for point in run.points}
    same, details = _first_with(blocks), _in_groups(run.points)
    points = {
        point.id: _point(point, varying, table, blocks.get(point.id))
        | {"same": same.get(point.id, ""), "group": n // TOGETHER}
        for n, point in enumerate(run.points)
    }
    template = environment().get_template("report.html")
    return template.render(
        run=run,
        plan=run.summary.get("plan", run.name.partition("-")[2] or run.name),
        about=run.summary.get("about", ""),
        counts=_counts(run),
        statement=lines(run.summary),
        claims=claim_rows(claims_of(run)),
        expectations=_expectations(run),
        reproduce=run.summary.get("reproduce", "testctl run PLAN"),
        versions=flat(run.versions),
        looks=VERDICT_LOOKS,
        columns=table,
        varying=varying,
        points=list(points.values()),
        details=details,
        listed=[points[point.id] for point in failures_first(run.points)],
        failures=failure_lines(run.points),
        plan_text=run.plan_text,
        figures=_figures(run),
        responses=len(shown),
        sweeps=len(sweeps),
        index=Markup(
            as_script(
                _index(run, varying, table)
                | {"responses": [asdict(one) for one in shown], "sweeps": [swept(one).to_json() for one in sweeps]}
            )
        ),
        css=Markup(styles()),
        script=Markup(script()),
        plotly=_plotly(),
        width=COLUMNS,
    )


def environment() -> Environment:
    """Environment for the templates of this directory, with autoescape."""
    return Environment(
        loader=PackageLoader("testctl.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def point_data(point: RunPoint) -> str | None:
    """The text of the script element with a point's figures and lists, which report.js reads; None without records."""
    data = embedded(point)
    return None if data is None else packed(data)


def write_page(run: Run, data: Mapping[str, str | None] | None = None, out: Path | None = None) -> Path:
    """Write report.html into the run's directory (or to `out`) at once; returns its path."""
    path = out or run.path / REPORT
    with naming_path(path, "the report was not written; the results are kept"):
        write_text(path, render_report(run, data))
    return path


def _first_with(blocks: Mapping[str, str | None]) -> dict[str, str]:
    """Points whose packets are those of another point -> the first of these: settings that made no difference."""
    first: dict[str, str] = {}
    found = {point: first.setdefault(data, point) for point, data in blocks.items() if data}
    return {point: other for point, other in found.items() if other != point}


def _in_groups(points: Sequence[RunPoint]) -> list[str]:
    """The texts of the script elements with what TOGETHER points have besides figures; they repeat most of it."""
    groups = [points[at : at + TOGETHER] for at in range(0, len(points), TOGETHER)]
    return [packed({point.id: _details(point) for point in group}) for group in groups]


def _figures(run: Run) -> Markup | None:
    """The figures that the plan declares, side by side, as a data address; None without any."""
    path = run.path / FIGURES / PAPER
    if not path.exists():
        return None
    return Markup("data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii"))


def _counts(run: Run) -> list[tuple[str, int]]:
    return [(verdict, sum(point.verdict == verdict for point in run.points)) for verdict in VERDICTS]


def _expectations(run: Run) -> list[dict[str, Any]]:
    varying = factors(run.points)
    names = {point.id: describe(point, varying) for point in run.points}
    return [
        {
            "name": str(item.get("name", "")),
            "verdict": str(item.get("verdict", "")),
            "detail": str(item.get("detail", "")),
            "points": [(point, names[point]) for point in item.get("points", []) if point in names],
        }
        for item in run.summary.get("expectations", [])
    ]


def _point(point: RunPoint, varying: Sequence[Factor], table: Sequence[Column], data: str | None) -> dict[str, Any]:
    return {
        "id": point.id,
        "name": describe(point, varying),
        "verdict": point.verdict,
        "reason": point.reason,
        "values": [(factor.values.index(factor.of[point.id]), factor.of[point.id]) for factor in varying],
        "cells": [("" if value is None else repr(value), text) for value, text in (c.cell(point) for c in table)],
        "data": data,
        "recorded": point.has_records,
    }


def _details(point: RunPoint) -> dict[str, Any]:
    """What a point's section has besides figures and lists."""
    return {
        "metrics": metric_table(point),
        "tuples": [[entity, parameter, str(value)] for entity, parameter, value in point.tuples],
        "captures": sorted(point.captures()),
        "digest": point.digest,
        "wall": show_time(point.wall_s * 1e9),
        "virtual": show_time(point.virtual_s * 1e9),
    }


def _index(run: Run, varying: Sequence[Factor], table: Sequence[Column]) -> dict[str, Any]:
    """What the matrix and the drawing code need to know of all points."""
    return {
        "factors": [{"label": factor.label, "values": list(factor.values)} for factor in varying],
        "points": [
            {
                "id": point.id,
                "verdict": point.verdict,
                "at": [factor.of[point.id] for factor in varying],
                "text": describe(point, varying),
                "metrics": {column.heading: list(column.cell(point)) for column in table if column.is_of(point)},
            }
            for point in run.points
        ],
        "metrics": [column.heading for column in table],
        "looks": looks(),
    }


def flat(versions: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Versions as rows of a table."""
    rows: list[tuple[str, str]] = []
    for name, value in versions.items():
        rows += flat(value, f"{prefix}{name} ") if isinstance(value, Mapping) else [(f"{prefix}{name}", str(value))]
    return rows


def _plotly() -> str:
    """plotly.js as the plotly package carries it (MIT licence), which the page reads when a figure is drawn.

    Packed it lies in the cache, if anything can be kept there: that takes longer than all else of a small report.
    """
    content = resources.files("plotly").joinpath("package_data/plotly.min.js").read_bytes()
    packer = Path(packing.__file__).read_bytes()
    file = checkout.cache_dir() / "plotly" / hashlib.sha256(packer + content).hexdigest()[:16]
    with suppress(OSError):
        return file.read_text(encoding="ascii")
    text = deflated(content)
    with suppress(OSError):
        durable.make_directory(file.parent)
        durable.write(file, text.encode("ascii"))
    return text
