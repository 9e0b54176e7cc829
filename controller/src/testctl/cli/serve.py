# SPDX-License-Identifier: Apache-2.0
"""testctl serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    results: Annotated[Path, typer.Option("--results", metavar="DIR", help="where runs are kept")] = Path("results"),
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="where to listen; beyond loopback a token is wanted")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free")] = 8042,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="the token, in a file of mode 0600 (default: a new one)"),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="a further name under which browsers may ask for the page")
    ] = None,
) -> None:
    """Show runs in a browser: points, matrix, trends, figures from seconds to microseconds.  Reads only."""
    from testctl.serve.server import serve as run

    run(results, host, port, token_file, name or ())
