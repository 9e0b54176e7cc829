# SPDX-License-Identifier: Apache-2.0
"""testctl doctor."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from testctl.cli import panels

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]


def doctor(as_json: AsJson = False) -> None:
    """Say what is missing on this machine, and the command that fixes it."""
    from testctl.cli.doctor import examine

    found = examine()
    if as_json:
        print(json.dumps([f.__dict__ for f in found], indent=1))
    else:
        for finding in found:
            mark = "ok     " if finding.ok else "absent " if finding.optional else "MISSING"
            print(
                f"{mark}  {finding.what}: {finding.got}"
                + ("" if finding.ok else f"\n         fix it with: {finding.fix}")
            )
    sys.exit(0 if all(f.ok or f.optional for f in found) else 3)


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=panels.SET_UP)(doctor)
