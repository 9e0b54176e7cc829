# SPDX-License-Identifier: Apache-2.0
"""Reads noise.json, which the A/A test of a testbed in wall-clock time wrote."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.results.reader import read_json
from testctl.results.shapes import NOISE

FILE = "noise.json"


def machine() -> dict[str, Any]:
    """The properties of a machine that its noise depends on."""
    return {"node": platform.node(), "kernel": platform.release(), "processors": os.cpu_count() or 1}


def newest(results: Path, testbed: str) -> dict[str, Any] | None:
    """The newest noise of this machine and testbed below a directory of results; None when there is none.

    A file that can't be read is skipped.
    """
    documents = []
    for path in results.glob(f"*/{FILE}"):
        with suppress(PlanError):
            documents.append(read_json(path, NOISE))
    same = [found for found in documents if (found["machine"], found["testbed"]) == (machine(), testbed)]
    return max(same, key=lambda document: str(document["started"]), default=None)
