# SPDX-License-Identifier: Apache-2.0
"""A run's lines, options to upload them, and its summary.json compared with what InfluxDB holds of it."""

from __future__ import annotations

import json
import random
from pathlib import Path

from testctl.results import Run
from testctl_agent.spec.units import Bytes, Duration
from testctl_influx.measurements import MEASUREMENTS
from testctl_influx.rows import summary_lines
from testctl_influx.send import Patience
from testctl_influx.series import series_lines
from testctl_influx.upload import UploadOptions

from plugins.influx.tests.influxd import Server


def lines_of(run: Run, width: str = "10ms") -> list[str]:
    """All lines of a run."""
    return [*summary_lines(run), *series_lines(run, Duration.parse(width))]


def options(spool: Path, most_lines: int = 5000) -> UploadOptions:
    """Two attempts, and batches of so many lines."""
    return UploadOptions(spool, Bytes.parse("10MB"), Patience(2, 0.01, random.Random(1)), most_lines=most_lines)


def differences(run: Run, influxd: Server, database: str = "testctl") -> list[str]:
    """Where the metrics of a run in InfluxDB are not those of its summary.json, either way."""
    summary = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    here, tags = {}, {"time", *MEASUREMENTS["metrics"].tags}
    for point in summary["points"]:
        tags |= {f"{entity}.{name}" for entity, name, _ in point["tuples"]}
        for flow, values in point["metrics"].items():
            here |= {(point["id"], flow, name): value for name, value in values.items() if value is not None}
    there = {}
    for row in influxd.rows(f"""SELECT * FROM metrics WHERE "run" = '{summary["run"]}'""", database):
        values = {name: value for name, value in row.items() if value is not None and name not in tags}
        there |= {(row["point"], row["flow"], name): value for name, value in values.items()}
    assert here
    return [f"{key}: {here.get(key)} {there.get(key)}" for key in here | there if here.get(key) != there.get(key)]
