# SPDX-License-Identifier: Apache-2.0
"""Where the project's own files and its cache lie."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from testctl_agent.spec.errors import TestbedError


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


def cache_dir() -> Path:
    """Where built kernels are kept: $TESTCTL_CACHE, or testctl in the user's cache directory."""
    named = os.environ.get("TESTCTL_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "testctl"
