# SPDX-License-Identifier: Apache-2.0
"""Which agent this is: its version and a hash of its code, so that controller and agents are of one tree."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from testctl_agent import __version__


@functools.cache
def version() -> str:
    """ "0.1.0+" and a hash of every Python file of the package."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
