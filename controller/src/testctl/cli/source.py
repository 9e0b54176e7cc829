# SPDX-License-Identifier: Apache-2.0
"""--source of the commands that run plans: the kernel of a tree of the user's."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testctl.lab.kernel import Kernel

METAVAR = "DIR[@REV]"
HELP = "run on the kernel of this tree, or of a git revision of it; what changed is built first"


def built(text: str) -> Kernel:
    """The kernel of DIR[@REV], with lines about its build.  Raises PlanError, TestbedError."""
    from testctl.cli.labs import _progress
    from testctl.lab.tree_kernel import build_tree
    from testctl.system.text import first_of

    with _progress() as progress:
        kernel, changed = build_tree(text, progress, os.cpu_count() or 1)
    release = kernel.directory / "release"
    version = release.read_text(encoding="utf-8").strip() if release.is_file() else "?"
    what = "" if changed is None else f"; changed since the last build: {first_of(changed, 8) or 'nothing'}"
    print(f"kernel of {text}: {version}, {kernel.binary}{what}", file=sys.stderr)
    return kernel
