# SPDX-License-Identifier: Apache-2.0
"""Where the project's own files and its cache lie."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.toolchain import cache_dir

__all__ = ["cache_dir", "lab", "root"]


@cache
def root() -> Path:
    """The checkout: $TESTCTL_ROOT, or the first directory above this file that has lab/."""
    named = os.environ.get("TESTCTL_ROOT")
    for place in [Path(named)] if named else list(Path(__file__).resolve().parents):
        if (place / "lab" / "kernel").is_dir():
            return place
    raise TestbedError("the checkout of testctl was not found: set TESTCTL_ROOT to the directory that has lab/")


def lab() -> Path:
    """lab/ of the checkout."""
    return root() / "lab"
