# SPDX-License-Identifier: Apache-2.0
"""testctl keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def keys(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="where they lie; made when missing")],
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="agents, as the inventory calls them")],
    controllers: Annotated[
        list[str] | None, typer.Option("--controller", metavar="NAME", help="another controller; may be repeated")
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, help="how long new ones hold")] = 825,
) -> None:
    """Make the certificates of a rack: its authority, the controllers', one for each agent."""
    from testctl_rack.pki import make

    made = make(directory, names, days, controllers or ())
    for path in made:
        print(f"made {path}")
    if not made:
        print(f"{directory}: all are there")
