# SPDX-License-Identifier: Apache-2.0
"""testctl analyse."""

from __future__ import annotations

import json
import shlex
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.cli import panels
from testctl.cli.exit_code import exit_code
from testctl.cli.options import AsJson

if TYPE_CHECKING:
    from testctl.analyse import Chosen

WIDTH = 80


def analyse(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="pcap or pcapng; gzip, zstd; two: of both ends of connections")
    ],
    at: Annotated[
        Literal["client", "server", "between"] | None,
        typer.Option("--at", help="where the (first) file was captured, if it does not show that"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="END", help="connections with this address, port or address:port alone"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="the run's directory (default: results/<time>-capture)")
    ] = None,
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="where runs are kept")] = Path("results"),
    as_json: AsJson = False,
) -> None:
    """Judge anybody's capture of TCP: stalls with causes, rules, metrics, curves, as of a run.

    Exit code 0; 1 where a connection breaks a MUST of an RFC; 2 for files that can't be analysed; 3 for too little
    memory.
    """
    from testctl.analyse import analyse_files, check_memory, choose, lines, listed, need_bytes, scan
    from testctl.records.errors import RecordsError
    from testctl.results import RunWriter

    try:
        chosen = choose([scan(path) for path in files], at, only or ())
        try:
            check_memory(chosen, files)
        except TestbedError:
            print("\n".join(lines(listed(chosen))))
            raise
        need = need_bytes(chosen)
        writer = RunWriter.create_at(out, need=need) if out else RunWriter.create(results, "capture", need=need)
        run = analyse_files(files, writer, chosen, _command(files, at, only or ()))
    except RecordsError as error:
        raise PlanError(str(error)) from error
    (point,) = run.points
    entries = listed(chosen, point)
    if as_json:
        document = {"run": str(run.path), "point": point.id, "verdict": point.verdict, "reason": point.reason}
        print(json.dumps(document | {"connections": [entry.to_json() for entry in entries]}, indent=1))
    else:
        _print_head(chosen, point.reason.split("; ") if point.reason else [])
        print("\n".join(lines(entries)))
        print(f"\nreport  {run.path / 'report.html'}")
        print(f"more    testctl show {run.path} {point.id[:8]}")
    sys.exit(exit_code(run))


def _print_head(chosen: Chosen, notes: list[str]) -> None:
    count = sum(len(flow.members) for flow in chosen.flows)
    print(f"{count} connection{'s' if count > 1 else ''}, {chosen.packets} packets of TCP")
    for note in notes:
        print(textwrap.fill(note, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))
    print()


def _command(files: list[Path], at: str | None, only: list[str] | tuple[str, ...]) -> str:
    words = ["testctl", "analyse", *map(str, files), *(["--at", at] if at else [])]
    return shlex.join([*words, *(word for end in only for word in ("--only", end))])


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=panels.LOOK)(analyse)
