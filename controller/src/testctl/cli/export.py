# SPDX-License-Identifier: Apache-2.0
"""testctl export."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer
from testctl_agent.spec.errors import PlanError
from testctl_agent.system import durable

from testctl.cli import complete, verdict_files
from testctl.cli.shows import PointId, RunDir
from testctl.results.atomic import naming_path, size_text

if TYPE_CHECKING:
    from testctl.records import Records
    from testctl.results import RunPoint

Write = Callable[["RunPoint", "Records", IO[bytes], str | None], tuple[str, list[str]]]


def export(
    run: RunDir,
    point: PointId,
    perfetto: Annotated[
        Path | None, typer.Option("--perfetto", metavar="FILE", help="write a trace for ui.perfetto.dev")
    ] = None,
    qlog: Annotated[Path | None, typer.Option("--qlog", metavar="FILE", help="write a qlog for qvis")] = None,
    flow: Annotated[
        str | None,
        typer.Option("--flow", metavar="FLOW", help="only this flow's connections", autocompletion=complete.flows),
    ] = None,
) -> None:
    """Write a point for other people's viewers; a name that ends in .gz is compressed."""
    from testctl.exports import write_perfetto, write_qlog
    from testctl.results import load_run

    chosen: list[tuple[Path | None, Write]] = [(perfetto, write_perfetto), (qlog, write_qlog)]
    if not (perfetto or qlog):
        raise PlanError("want --perfetto FILE, --qlog FILE or both; got neither")
    verdict_files.check({"perfetto": perfetto, "qlog": qlog})
    loaded = load_run(run).point(point)
    if (records := loaded.records()) is None:
        raise PlanError(f"{loaded.path}: want a point with packets; its verdict is {loaded.verdict}: {loaded.reason}")
    if flow is not None and flow not in records.flows:
        raise PlanError(f"--flow {flow}: want one of {', '.join(records.flows)}")
    for path, write in chosen:
        if path is not None:
            size, notes = _written(path, write, loaded, records, flow)
            print(f"{path}: {size}, {size_text(path.stat().st_size)}")
            for note in notes:
                print(f"  {note}")


def _written(path: Path, write: Write, point: RunPoint, records: Records, flow: str | None) -> tuple[str, list[str]]:
    """Write a file under a temporary name, and rename it when it is whole."""
    if path.is_dir():
        raise PlanError(f"{path}: want a file to write; got a directory")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with naming_path(path, "nothing was exported"):
        try:
            with temporary.open("xb") as plain:
                if path.suffix == ".gz":
                    with gzip.GzipFile("", "wb", 6, plain, mtime=0) as packed:
                        written = write(point, records, cast(IO[bytes], packed), flow)
                else:
                    written = write(point, records, plain, flow)
            durable.publish(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    return written
