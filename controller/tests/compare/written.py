# SPDX-License-Identifier: Apache-2.0
"""Runs written as testctl writes them, with points and packets of a test's choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from testctl.results import PointResult, Run, RunWriter, build_summary, load_run, write_point

from controller.tests.support.few_packets import few_packets

NOW = datetime(2026, 1, 31, 12, 5, 7, tzinfo=UTC)
TUPLES = (("hosts", "cc", "cubic"), ("switch", "delay", "5ms"))


@dataclass(frozen=True)
class Given:
    """A point: packets by what distinguishes them from others, None for a point without records."""

    id: str = "a0"
    tuples: Sequence[tuple[str, str, str]] = TUPLES
    metrics: Mapping[str, Any] = field(default_factory=lambda: {"throughput_bps": 1e9, "wire_bytes": 1000})
    packets: Sequence[Mapping[str, Any]] | None = ({}, {}, {})
    verdict: str = "pass"
    reason: str = ""
    repeat: int = 0


def write_run(where: Path, points: Sequence[Given], plan: str = "p", days: int = 0, **more: Any) -> Run:
    """A finished run `where`; more is added to its summary."""
    writer = RunWriter.create_at(where, need=0)
    for given in points:
        point = {"id": given.id, "tuples": [list(one) for one in given.tuples], "flows": [], "repeat": given.repeat}
        records = None
        if given.packets is not None:
            rows = [{"time_ns": 1000 * number, **values} for number, values in enumerate(given.packets)]
            records = few_packets(point, rows)
        result = PointResult(point, given.verdict, given.reason, metrics={"bulk": dict(given.metrics)}, records=records)
        write_point(writer.path, result)
    versions = {"commit": f"{days:040x}", "kernels": {"6.12": "6.12.117"}}
    started = NOW + timedelta(days=days)
    summary = build_summary(writer.path, plan=plan, started=started, wall_s=1, versions=versions)
    return load_run(writer.finish(summary | more))
