# SPDX-License-Identifier: Apache-2.0
"""testctl upload."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.spec.units import Bytes, Duration

URL = "TESTCTL_INFLUX_URL"


def upload(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a complete run, such as results/latest")],
    url: Annotated[str, typer.Option("--url", envvar=URL, help="the server")] = "http://127.0.0.1:8086",
    api: Annotated[str, typer.Option("--api", metavar="1|2|3", help="InfluxDB's version (default: asked)")] = "",
    database: Annotated[str, typer.Option("--database", help="of InfluxDB 1 and 3")] = "testctl",
    org: Annotated[str, typer.Option("--org", help="of InfluxDB 2")] = "",
    bucket: Annotated[str, typer.Option("--bucket", help="of InfluxDB 2 (default: --database)")] = "",
    policy: Annotated[str, typer.Option("--policy", help="retention policy of InfluxDB 1")] = "",
    series: Annotated[
        str, typer.Option("--series", metavar="1s|1ms|none", help="width of a bin of the series over time")
    ] = "10ms",
    credentials: Annotated[
        Path | None, typer.Option("--credentials", help="YAML with token, or user and password; mode 0600")
    ] = None,
    spool: Annotated[Path | None, typer.Option("--spool", help="where batches wait while the server is away")] = None,
    spool_limit: Annotated[str, typer.Option("--spool-limit", help="maximum size of the spool")] = "1GB",
    attempts: Annotated[int, typer.Option("--attempts", min=1, max=20, help="how often a batch is tried")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for machines")] = False,
) -> None:
    """Write a run to InfluxDB: points, metrics, series.  Idempotent: uploading a run again changes nothing.

    What the server can't take now waits on disk and goes first next time.  Exit 3 when batches wait or were refused.
    """
    width, limit = _width(series), _size(spool_limit)

    from testctl.results import load_run

    from testctl_influx.credentials import find_credentials
    from testctl_influx.rows import summary_lines
    from testctl_influx.send import Patience
    from testctl_influx.series import series_lines
    from testctl_influx.target import parse_target
    from testctl_influx.upload import UploadOptions
    from testctl_influx.upload import upload as send

    target = parse_target(url, api=api, database=database, org=org, bucket=bucket, policy=policy)
    who = find_credentials(credentials, os.environ)
    found = load_run(run)
    lines = chain(summary_lines(found), series_lines(found, width) if width else ())
    options = UploadOptions(spool or _spool_place(), limit, Patience(attempts))
    console = Console(stderr=True)
    with console.status("upload") as status:
        done = send(lines, target, who, options, lambda words: status.update(f"upload: {words}"))
    if as_json:
        print(json.dumps(asdict(done), indent=1))
    else:
        earlier = f" ({done.replayed} that waited)" if done.replayed else ""
        print(f"{done.lines} lines; {done.written} batches written{earlier} to {target.place}")
    problems = list(done.refusals)
    if done.waiting:
        wait = "1 batch waits" if done.waiting == 1 else f"{done.waiting} batches wait"
        problems.append(f"{done.away}; {wait} in {options.spool}, and the next upload sends what waits first")
    if problems:
        raise TestbedError("\n".join(problems))


def _width(text: str) -> Duration | None:
    """The width of a bin; None for "none"."""
    if text == "none":
        return None
    try:
        width = Duration.parse(text)
    except ValueError as error:
        raise PlanError(f"--series: {error}, or none") from error
    if width < 1000:
        raise PlanError(f"--series: want a bin of at least 1us, or none; got {text!r}")
    return width


def _size(text: str) -> Bytes:
    try:
        return Bytes.parse(text)
    except ValueError as error:
        raise PlanError(f"--spool-limit: {error}") from error


def _spool_place() -> Path:
    """$XDG_STATE_HOME/testctl/influx, by default in ~/.local/state.  Raises PlanError for a user without a home."""
    state = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(state) if state else Path.home() / ".local" / "state") / "testctl" / "influx"
    except RuntimeError as error:
        raise PlanError(f"--spool: want a directory, or HOME; got none: {error}") from error
