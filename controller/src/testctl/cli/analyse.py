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

from testctl.cli.exit_code import exit_code
from testctl.cli.options import AsJson, Results
from testctl.core.words import counted
from testctl.system.temporary import temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from testctl.analyse import Chosen
    from testctl.analyse.ends import At
    from testctl.analyse.listing import Listed
    from testctl.results import Run, RunWriter

Captured = Annotated[
    Literal["client", "server", "between"] | None,
    typer.Option("--at", help="where the (first) capture was made, if it does not show that"),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="END", help="connections with this address, port or address:port alone"),
]


def analyse(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="pcap or pcapng; gzip, zstd; two: of both ends of connections")
    ],
    at: Captured = None,
    only: Only = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="the run's directory (default: results/<time>-capture)")
    ] = None,
    results: Results = Path("results"),
    as_json: AsJson = False,
) -> None:
    """Judge anybody's capture of TCP: stalls with causes, rules, metrics, curves, as of a run.

    Exit code 0; 1 where a connection breaks a MUST of an RFC; 2 for files that can't be analysed; 3 for too little
    memory.
    """
    from testctl.analyse import lines, listed
    from testctl.results import RunWriter

    def writer(need: int) -> RunWriter:
        return RunWriter.create_at(out, need=need) if out else RunWriter.create(results, "capture", need=need)

    def print_entries(entries: Sequence[Listed], document: dict[str, str]) -> None:
        if as_json:
            print(json.dumps(document | {"connections": [entry.to_json() for entry in entries]}, indent=1))
        else:
            print("\n".join(lines(entries)))

    run, chosen = analysed(files, at, only or (), writer, lambda chosen: print_entries(listed(chosen), {}))
    (point,) = run.points
    if not as_json:
        _print_head(chosen, point.reason.split("; ") if point.reason else [])
    document = {"run": str(run.path), "point": point.id, "verdict": point.verdict, "reason": point.reason}
    print_entries(listed(chosen, point), document)
    if not as_json:
        print(f"\nreport  {run.path / 'report.html'}")
        print(f"more    testctl show {run.path} {point.id[:8]}")
    sys.exit(exit_code(run))


def analysed(
    files: list[Path],
    at: At | None,
    only: Sequence[str],
    writer: Callable[[int], RunWriter],
    too_large: Callable[[Chosen], None] = lambda chosen: None,
) -> tuple[Run, Chosen]:
    """The run with one point that a capture becomes, and its connections.

    writer: from the bytes that it needs on the disk
    too_large: is called with the connections for which there is too little memory

    Raises PlanError, TestbedError (too little memory).
    """
    from testctl.analyse import analyse_files, check_memory, choose, need_bytes, scan
    from testctl.records.errors import RecordsError

    if wrong := [file for file in files if not str(file).isprintable()]:
        raise PlanError(f"{str(wrong[0])!r}: want a file's name that can be shown")
    try:
        with temporary("testctl-analyse-") as work:
            chosen = choose([scan(path, work) for path in files], at, only)
            try:
                check_memory(chosen, files)
            except TestbedError:
                too_large(chosen)
                raise
            return analyse_files(files, writer(need_bytes(chosen)), chosen, _command(files, at, only)), chosen
    except RecordsError as error:
        raise PlanError(str(error)) from error


def _print_head(chosen: Chosen, notes: list[str]) -> None:
    from testctl.analyse.listing import WIDTH

    count = sum(len(flow.members) for flow in chosen.flows)
    print(f"{counted(count, 'connection')}, {counted(chosen.packets, 'packet of TCP')}")
    for note in notes:
        print(textwrap.fill(note, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))
    print()


def _command(files: list[Path], at: str | None, only: Sequence[str]) -> str:
    words = ["testctl", "analyse", *map(str, files), *(["--at", at] if at else [])]
    return shlex.join([*words, *(word for end in only for word in ("--only", end))])
