# SPDX-License-Identifier: Apache-2.0
"""What a run found, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from testctl.charts.response import Response
from testctl.charts.style import SHOWN_LOOKS
from testctl.core.units import show_metric, show_time
from testctl.core.words import counted
from testctl.report import provenance
from testctl.report.claims import claims_of, claims_table, reasons
from testctl.report.completions_terminal import slowdown_table
from testctl.report.expectations import judged
from testctl.report.factors import factors
from testctl.report.failures import failure_lines, failures_first
from testctl.report.fates import lines
from testctl.report.metrics import KEY_METRICS, Column, columns, expected_metrics, flow_names, one_number
from testctl.report.plain_points import plain_lines
from testctl.report.response import declared
from testctl.results import VERDICTS, Run, RunPoint
from testctl.results.layout import REPORT, UNJUDGED, verdict_shown
from testctl.results.provenance import from_here

_SHOWN = ("throughput_bps", "stability_cv_10ms", "stall_count", "stall_longest_ms", "latency_p99_us")
MANY = 100
"""Points up to which all are listed."""
_PLAIN_WIDTH = 160
"""Characters of a line of a table with sentences that is not for a terminal."""
_LONGEST_CELL = 32
_INDENT = 4
"""Characters before a sentence's further lines."""


def print_summary(run: Run, console: Console, *, every: bool = False) -> None:
    """Print the points, the expectations, the counts, the digest and, of a complete run, where the report is.

    When the console is not a terminal: plain text, where the points that passed are a line a group.
    every: of a run of more than MANY points, also those that passed
    """
    console = plain_console(console)
    if not run.complete and not run.summary:
        so_far = tuple(replace(point, verdict=verdict_shown(run.path, point.verdict)) for point in run.points)
        run = replace(run, points=so_far)
    whole = every or len(run.points) <= MANY or not console.is_terminal
    listed = [point for point in failures_first(run.points) if whole or point.verdict != "pass"]
    if listed and console.is_terminal:
        _print_points(run, listed, console)
    elif listed:
        for text in plain_lines(run, listed, _keys(run)):
            print_sentence(Text(text), console)
    if len(listed) < len(run.points):
        place = from_here(run.path.with_name(run.name))
        left_out = counted(len(run.points) - len(listed), "point")
        rest = f"not listed: {left_out} that passed; all are in testctl show {place}"
        console.print(Text(rest, style="dim"), soft_wrap=True)
    for point in run.points:
        if point.reason and point.verdict != "pass":
            reason = point.reason.replace("\n", "\n  ")  # an agent's words begin no line of their own
            print_sentence(Text.assemble(verdict_text(point.verdict), f"  {point.id[:8]}  {reason}"), console)
    slow = slowdown_table(run.points, console.width)
    if slow is not None:
        console.print(slow, markup=False)
    for shown in declared(run):
        console.print(Text(shown.title, style="bold"), _response(shown), sep="\n", markup=False)
    for text in lines(run.points):
        print_sentence(Text.assemble(("fates   ", "bold"), text), console)
    for expectation in judged(run.summary, run.points, run.plan_text):
        line = Text.assemble(verdict_text(expectation.verdict), "  ", (expectation.name, "bold"))
        detail = expectation.detail
        if expectation.verdict == "pass" and expectation.bound and expectation.observed:
            detail += f"; {expectation.metric} {expectation.bound}, found {expectation.observed}"
        print_sentence(line.append(f"  {detail}") if detail else line, console)
    claims = claims_of(run.summary)
    if claims:
        console.print(claims_table(claims))
        for line in reasons(claims):
            print_sentence(line, console)
    for about, sentence in provenance.lines(run.summary):
        print_sentence(Text.assemble((f"{about:<9}", "bold"), sentence), console)
    for verdict, sentence in failure_lines(run.points):
        print_sentence(Text.assemble(verdict_text(verdict), "  ", sentence), console)
    print_sentence(_counts(run), console)
    console.print(Text(f"digest  {run.digest}"), soft_wrap=True)
    if run.complete or not run.summary:
        print_place(run, console)


def print_sentence(text: Text, console: Console) -> None:
    """In a terminal no line is wider than it, and those after the first are indented; elsewhere it is one line."""
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        return
    for number, line in enumerate(text.wrap(console, console.width - _INDENT)):
        line.rstrip()
        console.print(Text.assemble(" " * _INDENT if number else "", line), soft_wrap=True)


def print_place(run: Run, console: Console) -> None:
    """Say where the report is, or the results of a run without."""
    report = run.path / REPORT
    place = f"report  {report}" if report.exists() else f"results  {run.path}"
    plain_console(console).print(Text(place), soft_wrap=True)


def plain_console(console: Console) -> Console:
    """The console itself if it is a terminal, else one for plain text in wide lines."""
    return console if console.is_terminal else Console(file=console.file, width=_PLAIN_WIDTH, color_system=None)


def _print_points(run: Run, listed: Sequence[RunPoint], console: Console) -> None:
    """The table of points of a terminal, without the metrics that do not fit, which are named."""
    varying = factors(run.points)
    ids = ("point", [point.id[:8] for point in listed])
    names = [ids, *((factor.label, [factor.of[point.id] for point in listed]) for factor in varying)]
    shown = columns(run.points, run.summary, _keys(run))
    numbers = [(column.heading, [_cut(column.cell(point)[1]) for point in listed]) for column in shown]
    left_out: list[str] = []
    free = console.width - _width("verdict", ["✗ verdict"])
    if sum(_width(*column) for column in [*names, *numbers]) > free:
        if len(varying) > 1 and sum(_width(*column) for column in names) > free / 2:
            print_sentence(Text(f"swept   {', '.join(factor.label for factor in varying)}"), console)
            names = [ids, ("values", [" ".join(factor.of[point.id] for factor in varying) for point in listed])]
        expected = expected_metrics(run.summary)
        shown, numbers = _that_vary(shown, numbers, expected, console)
        free -= sum(_width(*column) for column in names)
        if sum(_width(*column) for column in numbers) > free:
            shown, numbers = _shorter(shown, listed, console)
        if sum(_width(*column) for column in numbers) > free:
            numbers = [(_in_lines(heading), texts) for heading, texts in numbers]
        numbers, left_out = _that_fit(numbers, free, sum(column.metric in expected for column in shown))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading, _ in names:
        table.add_column(heading, overflow="fold", style="dim" if heading == "point" else "")
    table.add_column("verdict", no_wrap=True)
    for heading, _ in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for row, point in enumerate(listed):
        of_name, of_number = ([Text(texts[row]) for _, texts in some] for some in (names, numbers))
        table.add_row(*of_name, verdict_text(point.verdict), *of_number)
    console.print(table, markup=False)
    if left_out:
        print_sentence(Text(f"not shown, the terminal is too narrow: {', '.join(left_out)}", style="dim"), console)


def _keys(run: Run) -> list[tuple[str, str]]:
    """The key metrics that are shown: _SHOWN, and others in which points differ that are alike in these."""
    keys = [key for key in KEY_METRICS if key[0] in _SHOWN]
    texts = [[column.cell(point)[1] for column in columns(run.points, run.summary, keys)] for point in run.points]
    for key in KEY_METRICS:
        more = [[*row, show_metric(key[0], one_number(p, key[0]))] for row, p in zip(texts, run.points, strict=True)]
        if key not in keys and len(set(map(tuple, more))) > len(set(map(tuple, texts))):
            keys, texts = [*keys, key], more
    return [key for key in KEY_METRICS if key in keys]


Texts = list[tuple[str, list[str]]]
"""Columns: a heading, and the text of each point."""


def _that_vary(
    shown: Sequence[Column], numbers: Texts, expected: Sequence[str], console: Console
) -> tuple[list[Column], Texts]:
    """The columns but for those equal at all points, which are printed; expected ones stay."""
    same = [
        place
        for place, (_, texts) in enumerate(numbers)
        if len(texts) > 1 and len(set(texts)) == 1 and shown[place].metric not in expected
    ]
    if same:
        values = ", ".join(f"{numbers[place][0]} {numbers[place][1][0]}" for place in same)
        print_sentence(Text(f"at each point: {values}", style="dim"), console)
    left = [place for place in range(len(numbers)) if place not in same]
    return [shown[place] for place in left], [numbers[place] for place in left]


def _shorter(shown: Sequence[Column], listed: Sequence[RunPoint], console: Console) -> tuple[list[Column], Texts]:
    """What each flow has, in place of one number for all; names of flows that all points have are printed once."""
    of_each = {column.metric for column in shown if column.each}
    kept = [column for column in shown if column.each or column.metric not in of_each]
    named = len({tuple(flow_names(point)) for point in listed}) > 1
    numbers = [
        (column.metric if column.each else column.heading,
         [_cut(column.cell(point, named=named)[1]) for point in listed])
        for column in kept
    ]  # fmt: skip
    if any(column.cell(point) != column.cell(point, named=named) for column in kept for point in listed):
        print_sentence(Text(f"values  of {', '.join(flow_names(listed[0]))}", style="dim"), console)
    return kept, numbers


def _that_fit(found: Texts, free: int, first: int) -> tuple[Texts, list[str]]:
    """(the columns that fit side by side into so many characters, the headings of the others).

    first: how many columns come before all others: no other is shown while one of them is not
    """
    fit: Texts = []
    others: list[str] = []
    for place, (heading, texts) in enumerate(found):
        width = _width(heading, texts)
        if width <= free and not (place >= first and others):
            free -= width
            fit.append((heading, texts))
        else:
            others.append(heading.replace("_\n", "_").replace("\n", " "))
    return fit, others


def _width(heading: str, texts: Sequence[str]) -> int:
    """Characters of a column with the space beside it."""
    return max(map(cell_len, (*heading.split("\n"), *texts))) + 2


def _in_lines(heading: str) -> str:
    """A heading in two lines, broken where they are most alike."""
    breaks = [at for at, letter in enumerate(heading, 1) if letter in "_ "]
    at = min(breaks, key=lambda at: abs(2 * at - len(heading)), default=len(heading))
    return f"{heading[:at].rstrip(' ')}\n{heading[at:]}" if at < len(heading) else heading


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"


def _response(shown: Response) -> Table:
    """The windows of a figure of kind `response`, a column for each rate of loss."""
    rates = shown.reno.rates
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("window (segments)", no_wrap=True)
    for rate in rates:
        table.add_column(f"{rate:.3g}", justify="right", no_wrap=True)
    for name, windows in [(curve.name, dict(zip(curve.rates, curve.windows, strict=True))) for curve in shown.curves]:
        table.add_row(name, *(f"{windows[rate]:.3g}" if rate in windows else "–" for rate in rates))
    table.add_row(shown.reno.name, *(f"{window:.3g}" for window in shown.reno.windows), style="dim")
    return table


def verdict_text(verdict: str) -> Text:
    look = SHOWN_LOOKS.get(verdict)
    return Text(f"{look.sign} {verdict}", style=look.rich) if look else Text(verdict)


def _counts(run: Run) -> Text:
    line = Text()
    for verdict in (*VERDICTS, UNJUDGED):
        count = sum(point.verdict == verdict for point in run.points)
        if count:
            line.append(f"{count} {verdict}", style=SHOWN_LOOKS[verdict].rich).append("  ")
    took = run.summary.get("wall_s")
    return line.append(f"of {len(run.points)}" + (f" in {show_time(float(took) * 1e9)}" if took is not None else ""))
