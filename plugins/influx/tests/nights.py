# SPDX-License-Identifier: Apache-2.0
"""A real run, its copies on later days, and what each dashboard asks of an InfluxDB that has them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testctl.metrics import metric_names
from testctl.results import Run, load_run
from testctl_influx.rows import started_ns

from plugins.influx.tests.grafana import EVERY, Choices, Window, board, filled, queries, variables
from plugins.influx.tests.influxd import Server

BOARDS = sorted((Path(__file__).parents[3] / "dashboards").glob("*.json"))
DAY_S = 86_400

# Something of all: losses, requests, a stall, an expectation that holds and one that does not.
PLAN = """
about: a flow that is cut short, and requests, over a small buffer
topology: pair
flows: {bulk: sender -> receiver, web: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, 60kB]
  - [switch, delay, 2ms]
  - [bulk, pattern, stall at 200kB for 60ms]
  - [bulk, duration, 300ms]
  - [bulk, parallel, 2]
  - [web, requests, 20]
  - [web, arrival_rate, 100]
  - [web, sizes, 2kB]
expect:
  - {name: the link is used, flow: bulk, metric: saturation, min: 0.2}
  - {name: "more than the link, says reno", flow: bulk, metric: saturation, min: 2, when: {hosts.cc: reno}}
"""


def call(*words: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TESTCTL_INFLUX_")}
    argv = [sys.executable, "-m", "testctl.cli.main", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False, env=environ)


def real_run(where: Path) -> Run:
    """A run of PLAN in the lab."""
    plan = where / "small.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    done = call("run", str(plan), "--out", str(where / "run"))
    assert done.returncode == 1, done.stdout + done.stderr
    return load_run(where / "run")


@dataclass(frozen=True)
class Nights:
    """The real run, and copies of it on the days after, in which each metric has a value; the newest is the last."""

    server: Server
    runs: tuple[Run, ...]

    @property
    def measured(self) -> set[str]:
        """The metrics that some point has a value of."""
        flows = [values for run in self.runs for point in run.points for values in point.metrics.values()]
        return {name for values in flows for name, value in values.items() if value is not None}

    def choices(self, path: Path) -> dict[str, Any]:
        """The first value of each variable that its query finds; all, where that can be chosen; the newest run."""
        chosen: dict[str, Any] = {}
        for one in variables(board(path)):
            found = self.offered(one, chosen)
            assert found, f"{path.name}: variable {one['name']} has no value: {one['query']}"
            chosen[one["name"]] = EVERY if one.get("includeAll") else found[0]
            if one["name"] == "run":
                assert set(found) == {run.name for run in self.runs}
                chosen["run"] = self.runs[-1].name
        return chosen

    def offered(self, variable: dict[str, Any], chosen: Choices) -> list[str]:
        """The values that Grafana offers of a variable, given those before it."""
        query = filled(variable["query"], chosen, Window(0, 1, "1s"))
        rows = self.server.rows(query)
        found = [str(row.get("value", row.get("tagKey"))) for row in rows]
        only = re.compile(variable["regex"].strip("/")) if variable["regex"] else None
        return sorted({value for value in found if only is None or only.search(value)})

    def window(self, path: Path) -> Window:
        """What is looked at: the second of the newest run's traffic, or all nightly runs."""
        first, last = started_ns(self.runs[0]), started_ns(self.runs[-1])
        if path.stem == "point":
            return Window(last, last + 10**9, "10ms")
        return Window(first - 3600 * 10**9, last + 3600 * 10**9, "10m")

    def silent(self, path: Path, choices: Choices) -> list[str]:
        """The dashboard's queries that find no value."""
        return [query for query, found in self.answers(path, choices).items() if not _has_values(found)]

    def answers(self, path: Path, choices: Choices) -> dict[str, list[dict[str, Any]]]:
        """The dashboard's queries, each with its place before it, and what the server finds."""
        asked = [(one, filled(one.query, choices, self.window(path))) for one in queries(board(path))]
        assert asked
        return {f"{one.where}: {query}": self.server.ask(query) for one, query in asked}


def _has_values(series: list[dict[str, Any]]) -> bool:
    return any(
        value is not None
        for one in series
        for row in one["values"]
        for name, value in zip(one["columns"], row, strict=True)
        if name not in ("time", "plan", "run", "point", "flow")
    )


def night(run: Run, days: int) -> Run:
    """The run again, days later, every metric with a value: what was not measured is 1 (or text)."""
    made = run.path.with_name(f"night{days}")
    shutil.copytree(run.path, made)
    summary = json.loads((made / "summary.json").read_text(encoding="utf-8"))
    started = started_ns(run) // 10**9 + days * DAY_S
    summary |= {"run": made.name, "started": datetime.fromtimestamp(started, UTC).isoformat()}
    for point in summary["points"]:
        for values in point["metrics"].values():
            for name in values:
                if values[name] is None:
                    values[name] = "none" if metric_names()[name].text else float(days)
        (made / "points" / point["id"] / "metrics.json").write_text(json.dumps(point["metrics"]), encoding="utf-8")
    (made / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return load_run(made)
