# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]
Commands = Annotated[bool, typer.Option("--commands", help="run the command lines of the run's plan, if it has any")]
Family = Annotated[
    str, typer.Option("--family", metavar="4|6|both", help="whose addresses the names of hosts stand for; 6: over IPv6")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, max=256, help="points at once")]
Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="where runs are kept")]
Writable = Annotated[
    Path | None,
    typer.Option("--writable", metavar="DIR", exists=True, file_okay=False, help="a directory to write to there"),
]
