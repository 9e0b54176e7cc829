# SPDX-License-Identifier: Apache-2.0
"""One point of a run, in the terminal: what was asked, what was found, and where to look further."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from testctl.report.fates import lines
from testctl.report.formulas import with_value
from testctl.report.metrics import expected_metrics, metric_table
from testctl.report.programs import program_lines
from testctl.report.terminal import plain_console, print_sentence, verdict_text
from testctl.report.violations import violation_lines
from testctl.results import Run, RunPoint
from testctl.results.layout import verdict_shown
from testctl.results.provenance import from_here


def print_point(run: Run, point: RunPoint, console: Console) -> None:
    """The point's verdict with its reasons, its tuples, what became of its fates, all its metrics, and its files."""
    console = plain_console(console)
    verdict = verdict_shown(run.path, point.verdict) if not run.complete and not run.summary else point.verdict
    print_sentence(Text.assemble((point.id, "bold"), "  ", verdict_text(verdict)), console)
    for reason in point.reason.split("; ") if point.reason else []:
        print_sentence(Text(f"  {reason}"), console)
    values: dict[tuple[str, str], set[str]] = {}
    for entity, parameter, value in (one for any_point in run.points for one in any_point.tuples):
        values.setdefault((entity, parameter), set()).add(str(value))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("entity", "parameter", "value", ""):
        table.add_column(heading, overflow="fold")
    for entity, parameter, value in point.tuples:
        is_swept = len(values[entity, parameter]) > 1
        text = with_value(point, entity, parameter, value)
        table.add_row(*map(Text, (entity, parameter, text, "swept" if is_swept else "")))
    console.print(table, markup=False)
    for text in violation_lines(point):
        print_sentence(Text.assemble(("broke   ", "bold"), text), console)
    for text in lines([point]):
        print_sentence(Text.assemble(("fates   ", "bold"), text), console)
    for text in program_lines(point):
        print_sentence(Text.assemble(("program ", "bold"), text), console)
    found = metric_table(point, expected_metrics(run.summary))
    if found["rows"]:
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("metric", no_wrap=True)
        for flow in found["flows"]:
            table.add_column(str(flow), justify="right", overflow="fold")
        for name, *cells in found["rows"]:
            table.add_row(name, *(Text(cell["shown"]) for cell in cells))
        console.print(table, markup=False)
    place = from_here(run.path)
    for name, text in (
        ("took", f"{point.wall_s:.1f} s for {point.virtual_s:g} s of the point's own time"),
        ("digest", point.digest or "none"),
        ("files", from_here(point.path)),
        ("curves", f"testctl series {place} {point.id[:8]}"),
        ("again", f"testctl replay {place} {point.id[:8]}" if run.plan_text else str(run.summary.get("reproduce", ""))),
    ):
        console.print(Text.assemble((f"{name:<8}", "bold"), text), soft_wrap=True)
