# SPDX-License-Identifier: Apache-2.0
"""The list of runs, and one run with its points; damaged parts are marked, and the others are shown."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from testctl_agent.spec import untrusted
from testctl_agent.spec.errors import PlanError, TestctlError
from testctl_agent.spec.untrusted import misfit

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.plan import FigureSpec, Judgement
from testctl.records import Records
from testctl.report.metrics import number_of
from testctl.report.plan_charts import chart_of
from testctl.report.run_page import Found, overrides_of, plan_of, run_figures, run_page, specs_in, time_of
from testctl.report.sweep_choice import asked_spec
from testctl.results import RunPoint, layout, shapes
from testctl.results.reader import load_point, read_json
from testctl.results.verdict_file import VerdictFile
from testctl.serve import listing
from testctl.serve.cache import Cache, stamp
from testctl.serve.files import files
from testctl.serve.source import read_source

T = TypeVar("T")
_BEFORE_POINTS = b'\n "points": ['
"""What begins the points in summary.json: all that a list of runs needs stands before it."""
_PIECE = 1 << 16
MOST_HEAD = 16 << 20

_SHOWN = (*layout.VERDICTS, layout.UNJUDGED)

LONG_S, MANY_TIMES = 120.0, 20
"""A run in progress is probably stopped if no point ended in LONG_S seconds and MANY_TIMES the time of a point."""


class Runs:
    """The runs of a results directory, read when asked for and kept while their files are the same."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._heads = Cache(5000)
        self._found = Cache(8)
        self._pages = Cache(8)
        self._sweeps = Cache(8)
        self._totals = Cache(50)
        self._figures = Cache(32)

    def lines(self) -> list[dict[str, Any]]:
        """Every run in one line, newest first."""
        lines = [self._heads.get(name, _version(path), partial(self._line, path)) for name, path in self._all()]
        now = time.time()
        lines = [line if line["progress"] is None else line | _left(line["progress"], now) for line in lines]
        return sorted(lines, key=lambda line: (str(line["started"]), str(line["name"])), reverse=True)

    def find(self, name: str) -> Found:
        """A run with its points.  Raises Unknown."""
        path = listing.run_path(self.root, name)
        return self._found.get(path.name, _version(path), lambda: _find(path))

    def kept(self, cache: Cache, run: str, make: Callable[[Found], T], *key: Hashable) -> T:
        """The value that `make` returns for a run, kept in a cache while the run is the same.  Raises Unknown.

        key  further words under which it is kept
        """
        path = listing.run_path(self.root, run)
        return cache.get((path.name, *key), _version(path), lambda: make(self.find(run)))

    def page(self, run: str) -> dict[str, Any]:
        """A run for the page: its facts, what varies, its points."""
        page = self.kept(self._pages, run, _page)
        if page["state"] == "in progress":
            return page | next(
                ({"progress": line["progress"]} for line in self.lines() if line["name"] == page["name"]), {}
            )
        return page

    def name_of(self, run: str, point: str) -> str:
        """A point in words: what distinguishes it from the others of its run; "" when that is not known."""
        return next((str(one["name"]) for one in self.page(run)["points"] if one["id"] == point), "")

    def values(self, run: str, metric: str, flow: str) -> dict[str, float | None]:
        """A metric of every point of a run, by the points' ids."""
        return {point.id: number_of(point, metric, flow) for point in self.find(run).points}

    def sweeps(self, run: str) -> dict[str, Any]:
        """The figures of the run's plan: those of metrics, else a default one; of the others title and number."""
        return self.kept(self._sweeps, run, lambda whole: run_figures(whole, _plan_text(whole)))

    def figure(self, run: str, number: int) -> dict[str, Any]:
        """A figure of the run's plan, by its place in the plan.  Raises Unknown."""
        specs = specs_in(_plan_text(self.find(run)))
        if not 0 <= number < len(specs):
            raise listing.Unknown(f"the plan of this run has {len(specs)} figures; got number {number}")
        return self.kept(self._figures, run, lambda whole: _figure(whole, specs[number]), number)

    def sweep(self, run: str, kind: str, metric: str, **given: str) -> dict[str, Any]:
        """One that is asked for.  Raises PlanError for what the run has not."""
        whole = self.find(run)
        return _figure(whole, asked_spec(whole.points, kind, metric, **given))

    def _all(self) -> list[tuple[str, Path]]:
        return list(listing.runs(self.root).items())

    def _line(self, path: Path) -> dict[str, Any]:
        total = partial(self._totals.get, path.name, stamp(path / layout.EXPANDED), lambda: len(planned(path)))
        return _line(path, total)


def _version(run: Path) -> tuple[Any, ...]:
    """Changes when the run does: a complete run never, one in progress with every point."""
    return stamp(run), stamp(run / layout.SUMMARY), stamp(run / layout.POINTS)


def _line(path: Path, total: Callable[[], int]) -> dict[str, Any]:
    """A run in one line.  total: the number of points of its plan, called while it is in progress."""
    progress = path.name.endswith(layout.IN_PROGRESS)
    line: dict[str, Any] = {"name": path.name, "state": "in progress" if progress else "complete", "damage": ""}
    try:
        head = _head(path) if not progress else _so_far(path, total())
    except Exception as error:  # noqa: BLE001  one damaged run must not take away the list of all
        head = {}
        line |= {"state": "damaged", "damage": _plain(error)}
    versions = head.get("versions")
    kernels = versions.get("kernels") if isinstance(versions, Mapping) else None
    counts = head.get("counts")
    return line | {
        "plan": str(head.get("plan") or plan_of(path)),
        "about": str(head.get("about") or ""),
        "started": str(head.get("started") or time_of(path)),
        "digest": str(head.get("digest") or ""),
        "overrides": overrides_of(head),
        "exact": kind_of(str(head.get("testbed") or DEFAULT)).deterministic,
        "progress": head.get("progress") if progress else None,
        "kernels": [str(value) for value in kernels.values()] if isinstance(kernels, Mapping) else [],
        "counts": {verdict: counts.get(verdict, 0) for verdict in _SHOWN} if isinstance(counts, dict) else {},
    }


def _head(run: Path) -> dict[str, Any]:
    """summary.json without its points, which are most of it.  Raises PlanError, OSError."""
    path = listing.own_file(run, layout.SUMMARY)
    if path is None:
        raise PlanError(f"{layout.SUMMARY} is missing")
    head, end = bytearray(), -1
    with path.open("rb") as file:
        while end < 0 and (piece := file.read(_PIECE)):
            looked = max(len(head) - len(_BEFORE_POINTS), 0)
            head += piece
            end = head.find(_BEFORE_POINTS, looked)
            if len(head) > MOST_HEAD:
                raise PlanError(f"{layout.SUMMARY}: want its points within the first {MOST_HEAD >> 20} MiB")
    text = head[: end if end >= 0 else None].decode(errors="replace")
    if end >= 0:
        text = text.rstrip().removesuffix(",") + "}"
    try:
        value = untrusted.loads(text)
    except ValueError as error:
        raise PlanError(f"{layout.SUMMARY} is not whole: {error}") from error
    if why := misfit(value, shapes.HEAD):
        raise PlanError(f"{layout.SUMMARY}: {why}")
    return dict(value)


def _so_far(run: Path, total: int) -> dict[str, Any]:
    """The state of a run in progress: verdicts of its finished points, and its pace."""
    counts: Counter[str] = Counter()
    computed, spent, last = 0, 0.0, 0.0
    for path in listing.points(run).values():
        file = listing.own_json(path, layout.VERDICT)
        counts[layout.verdict_shown(run, str(file.get("verdict")))] += 1
        if not file.get("reused_from") and isinstance(took := file.get("wall_s"), int | float):
            computed, spent, last = computed + 1, spent + took, max(last, path.stat().st_mtime)
    return {"counts": dict(counts), "progress": _progress(run, sum(counts.values()), total, (computed, spent, last))}


def _progress(run: Path, done: int, total: int, computed: tuple[int, float, float]) -> dict[str, Any] | None:
    """Finished points, all points, seconds a point at the pace so far, and when the last one was finished."""
    count, spent, last = computed
    if not total:
        return None
    try:
        began = datetime.fromisoformat(time_of(run)).timestamp()
    except ValueError:  # a name without a time, or with none that there is
        began = last - spent
    at_once = max(1.0, spent / (last - began)) if last > began else 1.0
    return {"done": done, "points": total, "pace_s": spent / count / at_once if count else None, "last": last}


def _left(progress: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The progress with the seconds left; None where no point is finished, or the next one is long overdue."""
    waiting, pace, quiet = progress["points"] - progress["done"], progress["pace_s"], now - progress["last"]
    known = pace is not None and waiting > 0 and quiet < max(LONG_S, MANY_TIMES * pace)
    left = max(pace, waiting * pace - quiet) if known else None
    return {"progress": {"done": progress["done"], "points": progress["points"], "left_s": left}}


def _find(path: Path) -> Found:
    damage: list[str] = []
    summary: dict[str, Any] = {}
    there = listing.points(path)
    if not path.name.endswith(layout.IN_PROGRESS):
        try:
            found = listing.own_json(path, layout.SUMMARY)
            if why := misfit(found, shapes.HEAD):
                raise PlanError(f"{layout.SUMMARY}: {why}")
            summary = found
        except TestctlError as error:
            damage.append(_plain(error))
    entries = summary.get("points")
    if isinstance(entries, list):
        points = [point for entry in entries if (point := _of_summary(entry, there, damage)) is not None]
    else:
        order = {point: index for index, point in enumerate(planned(path))}
        places = sorted(there.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
        points = [point for _, place in places if (point := _of_files(place, damage)) is not None]
    return Found(path, summary, tuple(points), tuple(damage))


def planned(run: Path) -> dict[str, Mapping[str, Any]]:
    """The points of a run's plan by their ids, in its order; empty where that can't be read."""
    try:
        return {str(point["id"]): point for point in listing.own_json(run, layout.EXPANDED)["points"]}
    except (TestctlError, KeyError, TypeError):
        return {}


def _of_summary(entry: Any, there: Mapping[str, Path], damage: list[str]) -> RunPoint | None:
    if why := misfit(entry, shapes.ENTRY):
        damage.append(f"a point in {layout.SUMMARY} is not as testctl writes it: {why}")
        return None
    try:
        place = there.get(str(entry["id"]))
        if place is None:
            damage.append(f"point {str(entry['id'])[:40]} is in {layout.SUMMARY}, and its directory is missing")
            return None
        if listing.own_file(place, layout.POINT) is None:
            raise PlanError(f"{place.name}/{layout.POINT}: want a plain file; there is none")
        asked = read_json(place / layout.POINT, shapes.POINT)  # read now, so that one that is not whole is shown here
        judged = Judgement.from_json(entry)
        return RunPoint(
            path=place,
            id=place.name,
            tuples=tuple((str(e), str(p), v) for e, p, v in entry["tuples"]),
            verdict=judged.verdict,
            reason=judged.reason,
            digest=str(entry.get("digest", "")),
            wall_s=float(entry.get("wall_s") or 0),
            virtual_s=float(entry.get("virtual_s") or 0),
            metrics=entry.get("metrics") or {},
            verdict_file=VerdictFile(place.name, judged, judged, reused_from=str(entry.get("reused_from", ""))),
            repeat=asked.get("repeat", 0),
        )
    except TestctlError as error:
        damage.append(f"point {entry['id']}: {_plain(error)}")
    except (KeyError, TypeError, ValueError) as error:
        damage.append(f"a point in {layout.SUMMARY} is not as testctl writes it: {error!r}")
    return None


def _of_files(place: Path, damage: list[str]) -> RunPoint | None:
    try:
        return point_of(place)
    except Exception as error:  # noqa: BLE001  as in _line()
        damage.append(f"point {place.name}: {_plain(error)}")
        return None


def point_of(place: Path) -> RunPoint:
    """A point from its own files.  Raises PlanError when one is missing, a link, or not whole."""
    for name in (layout.VERDICT, layout.POINT, layout.METRICS):
        if listing.own_file(place, name) is None:
            raise PlanError(f"{place.name}/{name}: want a plain file; there is none")
    found = load_point(place)
    return replace(found, verdict=layout.verdict_shown(place.parents[1], found.verdict))


def _page(run: Found) -> dict[str, Any]:
    return run_page(run, _plan_text(run), list(files(run.path, without=layout.POINTS).items()))


def _figure(run: Found, spec: FigureSpec) -> dict[str, Any]:
    return chart_of(spec, run.points, run.summary, _records).to_json()


def _records(point: RunPoint) -> Records | None:
    """A point's records; None where a further file that a figure reads is a link."""
    return None if (point.path / layout.STALLS).is_symlink() else read_source(point.path).records


def _plan_text(run: Found) -> str:
    plan = listing.own_file(run.path, layout.PLAN)
    return plan.read_text(encoding="utf-8", errors="replace") if plan else ""


def _plain(error: Exception) -> str:
    """An error without the directories above results/."""
    text = str(error)
    return text.rpartition("/")[2] if text.startswith("/") else text
