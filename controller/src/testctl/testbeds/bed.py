# SPDX-License-Identifier: Apache-2.0
"""What a kind of testbed offers."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec


class Bed(Protocol):
    """A testbed: where points are run.  Must be picklable."""

    def code_key(self, point: Point) -> str: ...

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]: ...
