# SPDX-License-Identifier: Apache-2.0
"""Runs candidates of an inferred plan in the lab, the likeliest first, and keeps the one that goes furthest with the
capture."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestctlError

from testctl.plan import load_plan
from testctl.records import Records, make_records
from testctl.reproduce.align import Alignment, align
from testctl.reproduce.infer import HOSTS, Inferred, of_hosts
from testctl.reproduce.tuples import Tuple
from testctl.reproduce.write import plan_text
from testctl.system.temporary import temporary
from testctl.testbeds.lab import LabTestbed

MOST = 40
"""Candidates that are run."""
_BYTES = "bytes"
"""The application as the packets show it, which guessed ones may replace."""
_GRO = {"gro": "off"}
_FAR = 2
"""This factor of data in common is better by far."""


@dataclass(frozen=True)
class Trial:
    """A candidate: its values of swept parameters, and the tuples of its plan.

    alignment  None where it could not be run; why: the reason
    """

    values: Mapping[str, str]
    tuples: Sequence[Tuple]
    alignment: Alignment | None
    why: str = ""

    @property
    def whole(self) -> bool:
        """Whether all packets are the same."""
        return self.alignment is not None and self.alignment.whole

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The greater the closer."""
        return self.alignment.rank if self.alignment else (False, -1, 0, 0)

    def text(self) -> str:
        text = " ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{text}: {self.alignment.text() if self.alignment else self.why}"


def search(inferred: Inferred, captured: Records, done: Callable[[Trial], None], most: int = MOST) -> None:
    """Runs at most `most` candidates, and none after one whose packets are all the same; `done` is called after each.

    The congestion control comes first: it changes most.  What changes little is tried with the best one so far.
    """
    swept = {item.param: list(item.values) for item in inferred.tuples if item.entity == "hosts"}
    values = {name: swept[name][0] for name in ("kernel", "cc", "tso", "gro")} | {"application": _BYTES}
    tried: set[tuple[str, ...]] = set()
    host = _side(inferred)
    best = Trial(values, (), None)

    def run(change: Mapping[str, str]) -> bool:
        """Whether it was better by far: likely the right congestion control."""
        nonlocal best
        now = {**best.values, **change}
        key = tuple(now.values())
        if key in tried or len(tried) >= most or best.whole:
            return False
        tried.add(key)
        trial = _tried(inferred, now, captured, host)
        done(trial)
        if trial.rank <= best.rank:
            return False
        before, best = best, trial
        return bool(before.alignment and trial.alignment and trial.alignment.timed > _FAR * before.alignment.timed)

    def best_of(changes: Sequence[Mapping[str, str]]) -> None:
        before = None
        while before is not best:
            before = best
            for change in changes:
                run(change)

    run({})
    applications = [{"application": name} for name in inferred.guessed]
    others = [*applications, _GRO, {"tso": "off"}, *({"kernel": name} for name in swept["kernel"][1:])]
    for change in applications:
        run(change)
    while True:
        if best.alignment and best.alignment.of_window:
            run(_GRO)
        for cc in swept["cc"]:
            if best.alignment and best.alignment.all_data:
                break
            if run({"cc": cc}):
                for change in applications:
                    run(change)
        before = best.rank
        best_of(others)
        if best.rank[:2] == before[:2]:
            return


def _side(inferred: Inferred) -> tuple[str, str]:
    """(host of the capture, host of the plan) at which packets are compared: where data is sent, if captured."""
    apps = [app for apps in inferred.flows.values() for app in apps]
    forward = sum(app.bytes if app.forward != app.reverse else -app.bytes for app in apps) >= 0
    pairs = list(zip(inferred.wire.hosts, HOSTS, strict=True))
    pairs = pairs if forward else pairs[::-1]
    return next(pair for pair in pairs if pair[0] in inferred.wire.seen)


def chosen(inferred: Inferred, values: Mapping[str, str]) -> list[Tuple]:
    """The tuples with one value of each of these parameters of hosts, and with the application that they name."""
    tuples = [
        replace(item, values=(values[item.param],)) if item.entity == "hosts" and item.param in values else item
        for item in inferred.tuples
    ]
    if values["application"] == _BYTES:
        return tuples
    instead = ("bytes", "pattern", "duration")
    kept = [item for item in tuples if item.entity not in inferred.flows or item.param not in instead]
    return [*kept, *inferred.guessed[values["application"]]]


def _tried(inferred: Inferred, values: Mapping[str, str], captured: Records, host: tuple[str, str]) -> Trial:
    tuples = chosen(inferred, values)
    plan = load_plan(plan_text(inferred, "a capture", tuples).encode())
    try:
        lab = LabTestbed.for_points(plan.points)
        with temporary("testctl-reproduce-") as home:
            raw = Path(home) / "raw"
            raw.mkdir()
            spec, outcome = lab.run(plan.points[0], raw)
            if outcome.skip or outcome.error:
                return Trial(values, tuples, None, outcome.skip or outcome.error)
            made = of_hosts(make_records(spec, outcome, raw))
            shutil.rmtree(raw, ignore_errors=True)
    except PlanError:
        raise
    except TestctlError as error:
        return Trial(values, tuples, None, str(error))
    return Trial(values, tuples, align(captured, host[0], made, host[1], inferred.flows))
