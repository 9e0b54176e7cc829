# SPDX-License-Identifier: Apache-2.0
"""testctl restore, testctl status: every host and switch of a rack."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from testctl.system.say import say
from testctl_agent.spec.errors import TestbedError


def restore(
    testbed: Annotated[Path, typer.Option("--testbed", metavar="INVENTORY", help="the rack's Ansible inventory")],
    wait: Annotated[float, typer.Option("--wait", min=0, help="seconds to wait for a lease to run out")] = 60.0,
) -> None:
    """Restore every host and switch of a rack from its agent's journal; exit 3 names those that could not be."""
    from testctl_rack.rack import restore as restore_rack

    for line in restore_rack(testbed, wait):
        say(line, sys.stdout)


def status(
    testbed: Annotated[Path, typer.Option("--testbed", metavar="INVENTORY", help="the rack's Ansible inventory")],
) -> None:
    """Who has which machine of a rack, since when, and who waits; exit 3 when a machine does not answer."""
    from testctl_rack.rack_status import rack_status

    lines, all_answer = rack_status(testbed)
    for line in lines:
        say(line, sys.stdout)
    if not all_answer:
        sys.exit(TestbedError.exit_code)
