# SPDX-License-Identifier: Apache-2.0
"""testctl doctor, testctl files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from testctl.cli.options import AsJson
from testctl.system import checkout


def doctor(as_json: AsJson = False) -> None:
    """Say what is missing on this machine, and the command that fixes it."""
    from testctl.cli.doctor import examine

    findings = examine()
    if as_json:
        print(json.dumps([finding.__dict__ for finding in findings], indent=1))
    else:
        for finding in findings:
            mark = "ok     " if finding.ok else "absent " if finding.optional else "MISSING"
            print(
                f"{mark}  {finding.what}: {finding.got}"
                + ("" if finding.ok else f"\n         fix it with: {finding.fix}")
            )
    sys.exit(0 if all(finding.ok or finding.optional for finding in findings) else 3)


def files(
    place: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="copy them there")] = None,
) -> None:
    """Print where testctl's own files lie (lab/, plans/), or copy them, to be changed."""
    if place is None:
        print(checkout.root())
        return
    checkout.copy_to(place)
    print(f"{place}: {' and '.join(f'{name}/' for name in checkout.COPIED)}; {checkout.GIVEN}={place.resolve()} "
          "in the environment makes testctl use them")  # fmt: skip
