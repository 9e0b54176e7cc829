# SPDX-License-Identifier: Apache-2.0
"""testctl coverage."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete
from testctl.cli.options import AsJson
from testctl.core import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testctl.coverage import Coverage, SourceFile
    from testctl.results import RunPoint

DEFAULT_FILES = "net/ipv4/tcp*.c"


def coverage(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN…", help="runs' directories, such as results/latest", autocompletion=complete.runs),
    ],
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="FILE", help=f"such as net/ipv4/tcp_input.c, or a pattern ({DEFAULT_FILES})"),
    ] = None,
    alone: Annotated[bool, typer.Option("--alone", help="the lines that one of two runs alone reaches")] = False,
    unreached: Annotated[bool, typer.Option("--unreached", help="the lines that no point reaches")] = False,
    line: Annotated[
        str | None,
        typer.Option("--line", metavar="FILE:N", help="which points reach a line, and with which tuples alone"),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="DIR", help="write the sources as pages, each line with its points")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="NAME", help="of several kernels that counted, the one to show")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What of the kernel the points of runs executed while the traffic passed: lines, branches, functions.

    Its kernel is one that counts: testctl lab build 6.12 --coverage, testctl run PLAN --kernel 6.12-coverage.
    """
    from testctl.coverage import coverage_of
    from testctl.results import load_run

    if sum((alone, unreached, line is not None, html is not None)) > 1:
        raise PlanError("want one of --alone, --unreached, --line and --html")
    if alone and len(runs) != 2:
        raise PlanError(f"--alone: want two runs; got {len(runs)}")
    loaded = [load_run(run) for run in runs]
    if alone:
        first, second = (coverage_of(run, name=kernel) for run in loaded)
        _print_alone(first, second, [file.name for file in _chosen(first, files or [DEFAULT_FILES])], as_json)
        return
    counted = coverage_of(*loaded, name=kernel)
    chosen = _chosen(counted, files or [DEFAULT_FILES])
    if line is not None:
        _print_line([point for run in loaded for point in run.points], counted, line, as_json)
    elif html is not None:
        from testctl.coverage.page import write_pages

        index = write_pages(counted, chosen, html)
        print(json.dumps({"index": str(index)}) if as_json else index)
    elif unreached:
        _print_unreached(counted, chosen, as_json)
    else:
        _print_files(counted, chosen, as_json)


def _chosen(counted: Coverage, patterns: list[str]) -> list[SourceFile]:
    chosen: dict[str, SourceFile] = {}
    for pattern in patterns:
        matching = {name: file for name, file in counted.files.items() if fnmatch(name, pattern)}
        if not matching:
            raise PlanError(f"--file {pattern}: want a file that kernel {counted.kernel} counts; got none of its name")
        chosen |= matching
    return [chosen[name] for name in sorted(chosen)]


def _print_files(counted: Coverage, files: list[SourceFile], as_json: bool) -> None:
    shares = {file.name: file.reached for file in files}
    if as_json:
        keys = ("lines", "branches", "functions")
        document = {
            name: {key: {"reached": share[0], "all": share[1]} for key, share in zip(keys, of, strict=True)}
            for name, of in shares.items()
        }
        print(json.dumps({"kernel": counted.kernel, "points": len(counted.points), "files": document}, indent=1))
        return
    table = Table("file", box=None, pad_edge=False)
    for heading in ("lines", "", "branches", "", "functions"):
        table.add_column(heading, justify="right")
    kinds = zip(*shares.values(), strict=True)
    lines, branches, functions = [(sum(share[0] for share in kind), sum(share[1] for share in kind)) for kind in kinds]
    for name, of in (shares | {"all": (lines, branches, functions)}).items():
        lines, branches, functions = of
        cells = [f"{lines[0]}/{lines[1]}", _percent(lines), f"{branches[0]}/{branches[1]}", _percent(branches)]
        table.add_row(name.removeprefix("net/ipv4/"), *cells, f"{functions[0]}/{functions[1]}")
    print(f"kernel {counted.kernel}, {words.counted(len(counted.points), 'point')}")
    Console().print(table)


def _percent(share: tuple[int, int]) -> str:
    return f"{100 * share[0] / share[1]:.1f} %" if share[1] else ""


def _print_unreached(counted: Coverage, files: list[SourceFile], as_json: bool) -> None:
    if as_json:
        print(json.dumps({file.name: file.unreached for file in files}, indent=1))
        return
    for file in files:
        text = counted.text(file.name)
        for number in file.unreached:
            print(f"{file.name}:{number}: {text[number - 1].strip() if number <= len(text) else ''}")


def _print_line(of_runs: Sequence[RunPoint], counted: Coverage, place: str, as_json: bool) -> None:
    from testctl.coverage.conditions import only_with

    name, _, number = place.rpartition(":")
    file = counted.files.get(name)
    if file is None or not number.isdecimal() or int(number) not in file.lines:
        raise PlanError(f"--line {place}: want FILE:N of a line that is compiled, as --unreached and --html show them")
    counts = file.lines[int(number)]
    points = {point.id: {(entity, name): str(value) for entity, name, value in point.tuples} for point in of_runs}
    of_points = [points[name] for name in counted.points]
    conditions = only_with(of_points, [count > 0 for count in counts])
    reaching = sorted(zip(counts.tolist(), counted.points, strict=True), reverse=True)
    reaching = [(count, name) for count, name in reaching if count]
    if as_json:
        document = {
            "points": {name: count for count, name in reaching},
            "only_with": [{"entity": e, "parameter": p, "values": values} for e, p, values in conditions],
        }
        print(json.dumps(document, indent=1))
        return
    text = counted.text(name)
    print(f"{place}: {text[int(number) - 1].strip() if int(number) <= len(text) else ''}")
    print(f"{len(reaching)} of {len(counted.points)} points reach it")
    for entity, parameter, values in conditions:
        print(f"  only with {entity}.{parameter}={' or '.join(values)}")
    for count, name in reaching[:5]:
        print(f"  {name}  {count} times")


def _print_alone(ours: Coverage, theirs: Coverage, names: list[str], as_json: bool) -> None:
    both = [(name, ours.files[name].reached_lines, theirs.files[name].reached_lines) for name in names
            if name in theirs.files]  # fmt: skip
    if as_json:
        print(json.dumps({name: {"first": sorted(a - b), "second": sorted(b - a)} for name, a, b in both}, indent=1))
        return
    for name, a, b in both:
        for which, lines, text in (("first", a - b, ours.text(name)), ("second", b - a, theirs.text(name))):
            for number in sorted(lines):
                print(f"{which} alone  {name}:{number}: {text[number - 1].strip() if number <= len(text) else ''}")
    different, reached = sum(len(a ^ b) for _, a, b in both), sum(len(a | b) for _, a, b in both)
    print(f"{different} of {reached} lines are reached by one run alone")
