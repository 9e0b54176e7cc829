# SPDX-License-Identifier: Apache-2.0
"""A run as lines: the same run gives the same lines, in the same order, whenever and wherever it is asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from testctl.results import Run, RunPoint
from testctl.results.provenance import Provenance
from testctl_agent.spec.errors import PlanError

from testctl_influx.line import Value, head, line, writable

MAX_TAG = 120
"""Characters of a tag's value; a longer one is cut, and ends in a hash of the whole."""

POINT_FLOW = "*"


def started_ns(run: Run) -> int:
    """When a run started, ns since 1970: the time of all but series.  Raises PlanError if it is not complete."""
    if "started" not in run.summary:
        raise PlanError(f"{run.path}: want a run that is complete; this one has no summary.json")
    return round(datetime.fromisoformat(str(run.summary["started"])).timestamp()) * 10**9


def run_tags(run: Run) -> dict[str, str]:
    """The tags of every line of a run."""
    made = Provenance.from_json(run.summary)
    options = [*made.overrides, *(f"without {one}" for one in made.without)]
    return {
        "plan": tag(run.summary.get("plan", "")),
        "run": tag(run.summary.get("run", run.name)),
        "testbed": tag(made.testbed),
        "options": tag("; ".join(options)),
    }


def summary_lines(run: Run) -> Iterator[str]:
    """The run, its expectations, its points and their metrics: all of summary.json that is a number or a verdict."""
    return filter(None, _lines(run))


def _lines(run: Run) -> Iterator[str | None]:
    time_ns, tags, content = started_ns(run), run_tags(run), run.summary
    counts = {name: float(count) for name, count in content["counts"].items()}
    versions = content.get("versions", {})
    fields: dict[str, Value] = {"points": len(content["points"]), **counts, "wall_s": content["wall_s"]}
    texts = {"digest": content["digest"], "commit": versions.get("commit"), "reproduce": content.get("reproduce")}
    yield line(head("runs", tags), {**fields, **texts}, time_ns)
    for found in content.get("expectations", ()):
        more = {"expectation": tag(found["name"]), "verdict": found["verdict"]}
        fields = {"points": len(found["points"]), "failed": float(found["verdict"] == "fail")}
        yield line(head("expectations", tags | more), {**fields, "detail": found.get("detail")}, time_ns)
    for point in run.points:
        yield from _point_lines(run, point, tags, time_ns)


def _point_lines(run: Run, point: RunPoint, tags: Mapping[str, str], time_ns: int) -> Iterator[str | None]:
    own = {**tags, "point": point.id, "verdict": point.verdict, **parameter_tags(point.tuples)}
    fields: dict[str, Value] = {
        "wall_s": point.wall_s,
        "virtual_s": point.virtual_s,
        "digest": point.digest,
        "reason": point.reason,
        "tuples": json.dumps([list(item) for item in point.tuples], ensure_ascii=False),
    }
    yield line(head("points", own | machine_tags(run, point)), fields, time_ns)
    for flow, values in point.metrics.items():
        of_flow = {**own, **machine_tags(run, point, flow), "flow": tag(flow)}
        yield line(head("metrics", of_flow), values, time_ns)


def parameter_tags(tuples: Iterable[tuple[str, str, Any]]) -> dict[str, str]:
    """A tag "<entity>.<parameter>" for each tuple; the values of one that is there twice are joined."""
    found: dict[str, list[str]] = {}
    for entity, parameter, value in tuples:
        found.setdefault(f"{entity}.{parameter}", []).append(_text(value))
    return {name: tag("; ".join(values)) for name, values in found.items()}


def machine_tags(run: Run, point: RunPoint, flow: str = POINT_FLOW) -> dict[str, str]:
    """The tags kernel and cc of a flow's sender; of a point those of all its flows, joined by "+"."""
    asked = point.point
    settings: Mapping[str, Mapping[str, Any]] = asked.get("settings", {})
    kernels, ccs = set(), set()
    for one in asked.get("flows", ()):
        if flow in (POINT_FLOW, one["name"]):
            host = settings.get(one["from"], {})
            kernels.add(str(host.get("kernel", "")))
            ccs.add(str(one.get("options", {}).get("cc") or host.get("cc", "")))
    default = list(run.summary.get("versions", {}).get("kernels", {}))
    if not kernels - {""} and len(default) == 1:
        kernels = {default[0]}
    return {name: tag("+".join(sorted(found - {""}))) for name, found in (("kernel", kernels), ("cc", ccs))}


def tag(value: object) -> str:
    """A value as a tag: text that can be written, and of bounded length."""
    text = writable(_text(value))
    if len(text) <= MAX_TAG:
        return text
    return f"{text[: MAX_TAG - 9]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
