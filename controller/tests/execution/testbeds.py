# SPDX-License-Identifier: Apache-2.0
"""Testbeds that run in the process itself, for tests of what hands points out; importable by workers too."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec
from testctl.testbeds.point_spec import spec_of
from testctl_agent.spec.errors import TestbedError

SCORE = "score"


@dataclass(frozen=True)
class Hashing:
    """What comes of a point is a hash of it: an outcome without records.

    mark    a directory in which every start of a point leaves a file
    deadly  the point with this id kills its own process the first time
    lacks   what `here` says is missing, "" when nothing is
    """

    mark: Path
    deadly: str = ""
    pause_s: float = 0.0
    lacks: str = ""
    key: str = "hashing"

    def code_key(self, point: Point) -> str:
        return self.key

    def here(self) -> Hashing:
        if self.lacks:
            raise TestbedError(self.lacks)
        return self

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        first = not list(self.mark.glob(f"{point.id}.*"))
        (self.mark / f"{point.id}.{os.getpid()}.{time.monotonic_ns()}").touch()
        if point.id == self.deadly and first:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.pause_s)
        found = hashlib.sha256(json.dumps(point.to_json()).encode()).hexdigest()
        return spec_of(point), Outcome(skip=f"{SCORE} {found}")

    def starts(self, point: Point) -> int:
        """How often it was begun."""
        return len(list(self.mark.glob(f"{point.id}.*")))


@dataclass(frozen=True)
class Bulky:
    """Each point has the captures of one that was made before.

    made    that point's directory
    mark    a file that gets a line whenever a point begins: the bytes that this process has in memory
    """

    made: Path
    mark: Path

    def code_key(self, point: Point) -> str:
        return "bulky"

    def here(self) -> Bulky:
        return self

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        with self.mark.open("a") as file:
            file.write(f"{4096 * int(Path('/proc/self/statm').read_text().split()[1])}\n")
        shutil.copytree(self.made / "raw", workdir, dirs_exist_ok=True)
        spec = PointSpec.from_json(json.loads((self.made / "point.json").read_text()) | {"id": point.id})
        return spec, Outcome.from_json(json.loads((workdir / "outcome.json").read_text()))
