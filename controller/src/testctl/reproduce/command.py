# SPDX-License-Identifier: Apache-2.0
"""Opens the point whose packets are reproduced."""

from __future__ import annotations

from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.records import Records
from testctl.reproduce.infer import Inferred, infer, of_hosts
from testctl.results import load_run

MOST_PACKETS = 3_000_000
"""With 600 bytes of memory for each they fit into 2 GiB."""


def infer_point(path: Path, start: str | None) -> tuple[Records, Inferred, str]:
    """(packets of its hosts, what they say, its name).  Raises PlanError, RecordsError."""
    run = load_run(path)
    if start is None and len(run.points) != 1:
        raise PlanError(f"{run.path}: want POINT, the id of one of its {len(run.points)} points")
    point = run.points[0] if start is None else run.point(start)
    if not point.has_records:
        raise PlanError(f"{point.path}: want a point with packets; it is {point.verdict}, and has none")
    records = point.records()
    assert records is not None, "it has records"
    if records.packets.num_rows > MOST_PACKETS:
        raise PlanError(
            f"{point.path}: want at most {MOST_PACKETS} packets to reproduce; got {records.packets.num_rows}"
        )
    hosts = of_hosts(records)
    try:
        return hosts, infer(hosts), f"point {point.id} of {run.name}"
    except PlanError as error:
        raise PlanError(f"{point.path}: {error}") from error
