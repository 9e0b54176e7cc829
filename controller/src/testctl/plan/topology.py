# SPDX-License-Identifier: Apache-2.0
"""Where the topology files are."""

from __future__ import annotations

import os
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.system import checkout


def topology_dir() -> Path:
    """Where the topology files are: $TESTCTL_LAB/topologies, or lab/topologies."""
    lab = os.environ.get("TESTCTL_LAB")
    if lab:
        directory = Path(lab) / "topologies"
        if not directory.is_dir():
            raise PlanError(f"TESTCTL_LAB: want a directory with topologies/ in it; got {lab}")
        return directory
    return checkout.lab() / "topologies"


def topology_names(directory: Path | None = None) -> tuple[str, ...]:
    """The topologies there are: the names of their files."""
    return tuple(sorted(path.stem for path in (directory or topology_dir()).glob("*.yaml")))
