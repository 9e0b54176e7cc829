# SPDX-License-Identifier: Apache-2.0
"""The plans with their last verdicts and shares that passed, and what changed in a plan's last run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.untrusted import misfit

from testctl.core.testbed_kind import kind_of
from testctl.report.factors import WithTuples, describe, factors
from testctl.report.night import FIRST, KEY, NOT_HERE, Results, changed, share
from testctl.results import layout, shapes
from testctl.results.provenance import Provenance
from testctl.serve import listing
from testctl.serve.cache import Cache, stamp
from testctl.serve.listing import Unknown
from testctl.serve.runs import Runs, planned

RUNS = 30
"""Runs of a plan whose shares are shown, the newest."""

WORST_FIRST = ("fail", "broken", "invalid", "skip", layout.UNJUDGED, "pass")

Line = Mapping[str, Any]


@dataclass(frozen=True)
class _Entry:
    """A point of a summary, as far as it says what was set."""

    id: str
    tuples: Sequence[tuple[str, str, Any]]
    repeat: int = 0


@dataclass(frozen=True)
class _Judged:
    """A run as it is compared with another."""

    points: Results
    tuples: Sequence[WithTuples]
    deterministic: bool
    nightly: bool
    since: str | None
    """The run that a nightly run was compared with; None: it is the first, or no nightly run."""
    share: str
    """How much of the plan a nightly run was, in a clause."""


class Home:
    """What the home page shows of a results directory."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._judged = Cache(1000)
        self._texts = Cache(200)
        self._shown: Sequence[Line] = ()

    def lists(self) -> dict[str, Any]:
        """All runs in one line each, newest first, and their plans (plans_of)."""
        self._shown = self._runs.lines()
        return {"runs": self._shown, "plans": plans_of(self._shown), "results": self._runs.root.name}

    def points(self, search: str) -> list[dict[str, Any]]:
        """Of each plan's last complete run how many points have all these words: [{"plan", "run", "count"}].

        The search on a run's page looks at the same: id, swept values, verdict and reason.
        """
        wanted, matching = search.lower().split(), []
        for plan in plans_of(self._runs.lines()):
            run = str(plan["last"]["name"])
            path = self._runs.root / run
            if wanted and plan["last"]["state"] == "complete":
                texts = self._texts.get(run, stamp(path / layout.SUMMARY), partial(_texts, path))
                count = sum(all(word in text for word in wanted) for text in texts)
                matching += [{"plan": plan["plan"], "run": run, "count": count}] if count else []
        return matching

    def since(self, run: str) -> dict[str, Any]:
        """What changed in a complete run since the one of its plan before: {"since", "share"} and that (changed).

        A nightly run is compared with the nightly run before it, as it was made; another with the newest one before it
        that has the same --set and --without.  Raises Unknown, PlanError.
        """
        try:
            return self._since(run, self._shown)
        except PlanError:  # what is listed is old: it has not this run, or one that was removed
            return self._since(run, self._runs.lines())

    def _since(self, run: str, shown: Sequence[Line]) -> dict[str, Any]:
        at = next((i for i, line in enumerate(shown) if line["name"] == run and line["state"] == "complete"), None)
        if at is None:
            raise Unknown(f"no complete run here is named {run[:100]!r}")
        now = self._look(run)
        earlier = [line for line in shown[at + 1 :] if (line["plan"], line["state"]) == (shown[at]["plan"], "complete")]
        if now.nightly:
            before = next((line for line in earlier if line["name"] == now.since), None)
        else:
            before = next((line for line in earlier if line["overrides"] == shown[at]["overrides"]), None)
        if before is None:
            text = (NOT_HERE if now.since else FIRST) if now.nightly else "the first run"
            return {"since": None, "text": text, "worse": False, "points": [], "share": now.share}
        name = str(before["name"])
        then = self._look(name)
        exact = then.deterministic and now.deterministic
        return {"since": name, "share": now.share} | changed(then.points, now.points, exact, now.tuples)

    def _look(self, run: str) -> _Judged:
        """A run of a listing, so that its name can be part of a path."""
        path = self._runs.root / run
        return self._judged.get(
            run, stamp(path / layout.SUMMARY), lambda: _judged(listing.own_json(path, layout.SUMMARY))
        )


def plans_of(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The plans, each with its newest run and the shares that passed, oldest first; failures first."""
    by: dict[str, list[Line]] = {}
    for line in lines:
        by.setdefault(str(line["plan"]), []).append(line)
    plans = [_plan(name, of) for name, of in by.items()]  # of one verdict: the newest stays first
    return sorted(plans, key=lambda plan: WORST_FIRST.index(plan["verdict"]) if plan["verdict"] else len(WORST_FIRST))


def worst(counts: Mapping[str, int]) -> str:
    """The verdict of a run by its counts; "" where it has no point."""
    return next((verdict for verdict in WORST_FIRST if counts.get(verdict)), "")


def _plan(name: str, lines: list[Line]) -> dict[str, Any]:
    complete = [line for line in lines if line["state"] == "complete"]
    last = complete[0] if complete else lines[0]
    going = next((line for line in lines if line["state"] == "in progress"), None)
    return {
        "plan": name,
        "about": next((line["about"] for line in lines if line["about"]), ""),
        "verdict": worst(last["counts"]),
        "last": {key: last[key] for key in ("name", "started", "counts", "state", "overrides")},
        "going": {"name": going["name"], "progress": going["progress"]} if going else None,
        "runs": len(lines),
        "shares": [
            {"share": _share(line["counts"]), "verdict": worst(line["counts"])} for line in complete[:RUNS][::-1]
        ],
    }  # fmt: skip


def _share(counts: Mapping[str, int]) -> float | None:
    """Points that passed of those that were measured; None where none was."""
    measured = sum(counts.values()) - counts.get("skip", 0)
    return counts.get("pass", 0) / measured if measured else None


def _texts(run: Path) -> list[str]:
    """Of each point of a run the text that a search looks at; [] where the summary is damaged."""
    try:
        entries = listing.own_json(run, layout.SUMMARY)["points"]
        asked = planned(run)
        points = [
            _Entry(
                id := str(entry["id"]),
                [(str(e), str(p), v) for e, p, v in entry["tuples"]],
                asked.get(id, {}).get("repeat", 0),
            )
            for entry in entries
        ]
        varying = factors(points)
        return [
            f"{point.id} {describe(point, varying)} {entry['verdict']} {entry.get('reason', '')}".lower()
            for point, entry in zip(points, entries, strict=True)
        ]
    except (PlanError, KeyError, TypeError, ValueError):
        return []


def _judged(summary: Mapping[str, Any]) -> _Judged:
    entries: Any = summary.get("points")
    if misfit(entries, [shapes.ENTRY]):
        raise PlanError(f"{layout.SUMMARY}: want points as testctl writes them")
    nightly = summary.get(KEY)
    since = nightly.get("since") if isinstance(nightly, Mapping) else None
    return _Judged(
        {entry["id"]: (entry["verdict"], entry.get("digest", "")) for entry in entries},
        [_Entry(entry["id"], [(str(e), str(p), v) for e, p, v in entry["tuples"]]) for entry in entries],
        kind_of(Provenance.from_json(summary).testbed).deterministic,
        isinstance(nightly, Mapping),
        since if isinstance(since, str) else None,
        share(nightly, len(entries)),
    )
