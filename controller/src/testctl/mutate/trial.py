# SPDX-License-Identifier: Apache-2.0
"""A point on a kernel with one of its mutants active, or with none."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec
from testctl.execution.point import measure
from testctl.plan import Judgement, Measured
from testctl.results import PointResult
from testctl.testbeds.lab import LabTestbed

MIN_WALL_S, TIMES_WALL = 20.0, 10.0
MORE_BYTES, TIMES_BYTES = 20 << 20, 10
"""What a point may take with a mutant, by what it takes without: a lab that hangs, or sends for ever, ends there."""

SEEN = "mutants"
"""The file among a point's raw files that lists the mutants that it reached (lab/boot/first_process.py)."""


@dataclass(frozen=True)
class Ran:
    """A point that was run.

    raw        hash of the raw files and of the outcome, which determine everything else
    raw_bytes  size of the raw files
    seen       a hexadecimal digit for two mutants (lab/kernel/variants/mutants_switch.c)
    """

    measured: Measured
    digest: str
    wall_s: float
    raw: str
    raw_bytes: int
    seen: str = ""

    def reaches(self, number: int) -> bool:
        return bool(self._bits(number) & 1)

    def differs(self, number: int) -> bool:
        """Whether the mutant would have given another value at least once: without that it changes nothing here."""
        return bool(self._bits(number) & 2)

    def _bits(self, number: int) -> int:
        digit = self.seen[(number - 1) // 2 : (number + 1) // 2] or "0"
        return int(digit, 16) >> (0 if number % 2 else 2) & 3

    def to_json(self) -> dict[str, Any]:
        measured = self.measured.to_json() | {
            name: dict(getattr(self.measured, name)) for name in ("metrics", "answers")
        }
        return vars(self) | {"measured": measured}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Ran:
        judged = Judgement.from_json(raw["measured"])
        kept = raw["measured"]
        measured = Measured(judged.verdict, judged.reason, kept["metrics"], kept.get("answers", {}))
        return cls(**{**raw, "measured": measured})


@dataclass(frozen=True)
class MutantLab:
    """The lab with a mutant active (0: none).  most_bytes: of its raw files; 0: any."""

    testbed: LabTestbed
    number: int
    most_bytes: int = 0

    def code_key(self, point: Point) -> str:
        return self.testbed.code_key(point)

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        parameters = ("oops=panic", f"testctl_mutants.active={self.number}")
        spec, outcome = replace(self.testbed, parameters=parameters).run(point, workdir)
        got = size_of(workdir)
        if self.most_bytes and got > self.most_bytes:
            raise TestbedError(f"it left {got >> 20} MB of packets; want at most {self.most_bytes >> 20} MB")
        return spec, outcome


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def hash_of(outcome: Outcome, raw: Path) -> str:
    """Of all that a lab left of a point but wall-clock times and the mutants that it reached."""
    digest = hashlib.sha256(json.dumps({**outcome.to_json(), "wall": None}, sort_keys=True).encode())
    for path in sorted(path for path in raw.rglob("*") if path.is_file() and path.name != SEEN):
        digest.update(f"{path.relative_to(raw)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def run_point(testbed: LabTestbed, point: Point, work: Path, number: int = 0, usual: Ran | None = None) -> Ran:
    """Run a point in a new directory, which is removed.

    usual: the point without a mutant, which limits its time and size; where the same bytes are left, the result is
    the same too
    """
    most, clock, raw = 0, time.monotonic(), ""
    if usual is not None:
        testbed = replace(testbed, wall_limit_s=max(MIN_WALL_S, TIMES_WALL * usual.wall_s))
        most = MORE_BYTES + TIMES_BYTES * usual.raw_bytes

    def known(outcome: Outcome, where: Path) -> PointResult | None:
        nonlocal raw
        raw = hash_of(outcome, where)
        return PointResult({}, "pass") if usual is not None and raw == usual.raw else None

    shutil.rmtree(work, ignore_errors=True)
    try:
        result = measure(MutantLab(testbed, number, most), point, work, False, known)
        wall_s = round(time.monotonic() - clock, 3)
        if usual is not None and raw == usual.raw:
            return replace(usual, wall_s=wall_s)
        digest = result.records.digest() if result.records is not None else ""
        seen = work / "raw" / SEEN
        text = seen.read_text(encoding="ascii").rstrip("0\n") if seen.is_file() else ""
        return Ran(result.measured, digest, wall_s, raw, size_of(work), text)
    finally:
        shutil.rmtree(work, ignore_errors=True)
