# SPDX-License-Identifier: Apache-2.0
"""testctl restore: restores every host and switch of a rack, also after a crash of the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testctl.cli import panels


def restore(
    testbed: Annotated[Path, typer.Option("--testbed", metavar="INVENTORY", help="the rack's Ansible inventory")],
    wait: Annotated[float, typer.Option("--wait", min=0, help="seconds to wait for a lease to run out")] = 60.0,
) -> None:
    """Restore every host and switch of a rack from its agent's journal; exit 3 names those that could not be."""
    from testctl.testbeds.rack import restore as restore_rack

    for line in restore_rack(testbed, wait):
        print(line)


def add_to(app: typer.Typer) -> None:
    app.command(rich_help_panel=panels.SET_UP)(restore)
