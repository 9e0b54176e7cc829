# SPDX-License-Identifier: Apache-2.0
"""The topology files there are, and the one of a name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.plan.diagnostics import show, suggest
from testctl.plan.topology_file import TopologyFile, read_topology
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


def find_topology(name: str, directory: Path | None = None) -> TopologyFile:
    """Of a name, or of the path of a file.  Raises PlanError."""
    if "/" in name or name.endswith(".yaml"):
        return read_topology(Path(name))
    known = topology_names(directory)
    if name not in known:
        raise PlanError(f"no topology named {show(name)}{other_topologies(name, known)}")
    return read_topology((directory or topology_dir()) / f"{name}.yaml")


def other_topologies(name: str, known: Sequence[str]) -> str:
    """The known topologies, and how to name one's own."""
    return suggest(name, known) or f"; there are {', '.join(known)}; your own: the path of its file, as ./NAME.yaml"
