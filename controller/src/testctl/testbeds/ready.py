# SPDX-License-Identifier: Apache-2.0
"""What a testbed that is ready for its points offers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from testctl_agent.spec.errors import TestbedError

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec


class NotOurs(TestbedError):
    """Another run has the testbed: no other point of this run can run on it."""


class ReadyTestbed(Protocol):
    """Where points are run.  Must be picklable."""

    def code_key(self, point: Point) -> str:
        """A hash of all code that the point's packets depend on: with another one `--resume` runs the point again."""

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        """Run a point, with its records below workdir.  What goes wrong is in the outcome; raises NotOurs alone."""


@runtime_checkable
class Booting(Protocol):
    """A testbed whose points change something that lasts longer than a point."""

    def in_order(self, points: Sequence[Point]) -> Sequence[Point]:
        """The points, such that it changes as rarely as possible."""

    def end(self) -> None:
        """Undo it, also after an error.  Raises TestbedError."""
