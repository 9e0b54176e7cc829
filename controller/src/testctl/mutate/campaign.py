# SPDX-License-Identifier: Apache-2.0
"""All mutants of a run: points without any of them first, then each mutant on the points that reach it."""

from __future__ import annotations

import json
import pickle
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.mutate.detect import At, Campaign, Record, detections, try_mutant
from testctl.mutate.draw import Mutant
from testctl.mutate.trial import Ran, run_point
from testctl.results.atomic import naming_path
from testctl.results.reader import read_json
from testctl.system.worker_pool import workers

HEAD, POINTS, MUTANTS, WORK, SHARED = "run.json", "points.jsonl", "mutants.jsonl", ".work", "campaign.pickle"
"""Files of a run: what determines it; a line for each point without a mutant; a line for each mutant."""
KILLED = "its worker was killed from outside (out of memory?)"


@dataclass
class Bench:
    """Tries mutants, and keeps what becomes of each as it comes.

    absent  the numbers of those that are not in the kernel
    most    points that a mutant is tried at
    until   time.monotonic() after which no other mutant is begun
    say     is called with a line of text
    own     each mutant is tried at the points of the plan with its number alone: the first mutant's is plan 0
    """

    campaign: Campaign
    mutants: Sequence[Mutant]
    absent: Sequence[int]
    directory: Path
    jobs: int
    most: int
    until: float
    say: Callable[[str], None]
    own: bool = False
    records: dict[int, Record] = field(default_factory=dict)
    detected: Counter[tuple[str, At]] = field(default_factory=Counter)
    tries: Counter[At] = field(default_factory=Counter)

    def run(self) -> None:
        """Every point, then every mutant that is not known, until the time is over.

        Raises TestbedError where a worker is killed during a point without mutant, or a point is broken; PlanError for
        files of an earlier run that are damaged.
        """
        try:
            for line in _lines(self.directory / POINTS):
                self.campaign.usual[line["plan"], line["point"]] = Ran.from_json(line["ran"])
            for line in _lines(self.directory / MUTANTS):
                self._count(Record(**line | {"tried": [tuple(at) for at in line["tried"]]}))
        except (KeyError, TypeError, ValueError) as error:
            want = f"{POINTS} and {MUTANTS} as testctl mutate wrote them"
            raise PlanError(f"--resume: {self.directory}: want {want}; got {error!r}") from error
        try:
            (self.directory / WORK).mkdir(exist_ok=True)
            self._without()
            shared = self.directory / WORK / SHARED
            # No verdict needs a plan's tuples, of which some can't be pickled.
            plans = [replace(plan, assignments=()) for plan in self.campaign.plans]
            durable.write(shared, pickle.dumps(replace(self.campaign, plans=plans)))
            with (self.directory / MUTANTS).open("a", encoding="utf-8") as file:
                for record in self._with(shared):
                    self._count(record)
                    _append(file, vars(record))
                    self.say(self._line(record))
        finally:
            shutil.rmtree(self.directory / WORK, ignore_errors=True)

    def _without(self) -> None:
        """Run the points without a mutant that are not known."""
        usual = self.campaign.usual
        todo = [(place, point.id) for place, plan in enumerate(self.campaign.plans) for point in plan.points]
        todo = [at for at in todo if at not in usual]
        with workers(self.jobs) as pool, (self.directory / POINTS).open("a", encoding="utf-8") as file:
            waiting: dict[Future[Ran], At] = {}
            for at in todo:
                work = self.directory / WORK / f"{at[0]}-{at[1]}"
                waiting[pool.submit(run_point, self.campaign.testbed, self.campaign.point(at), work)] = at
            while waiting:
                for future in wait_for(waiting, return_when=FIRST_COMPLETED).done:
                    at = waiting.pop(future)
                    try:
                        ran = usual[at] = future.result()
                    except BrokenProcessPool as error:
                        raise TestbedError(f"point {at[1]}: {KILLED}") from error
                    if ran.measured.verdict == "broken":
                        who = f"point {at[1]} of {self.campaign.plans[at[0]].name}"
                        raise TestbedError(f"{who} is broken without any mutant: {ran.measured.reason}")
                    _append(file, {"plan": at[0], "point": at[1], "ran": ran.to_json()})
                    self.say(f"[{len(todo) - len(waiting)}/{len(todo)}] point {at[1]} {ran.wall_s:.1f} s")
        for place, plan in enumerate(self.campaign.plans):
            for point in plan.points if todo else ():
                for text in detections(plan, point, self.campaign.unchanged(place)).values():
                    self.say(f"point {point.id} of {plan.name}, without any mutant: {text[:300]}")

    def _with(self, shared: Path) -> Iterator[Record]:
        """The record of each mutant that is not known; those that were tried when a worker was killed, one by one."""
        todo = [m for m in self.mutants if m.number not in self.records and m.number not in self.absent]
        while todo and time.monotonic() < self.until:
            begun: list[Mutant] = []
            try:
                with workers(self.jobs) as pool:
                    yield from self._at_once(pool, shared, todo, begun)
            except BrokenProcessPool:
                for mutant in (mutant for mutant in begun if mutant.number not in self.records):
                    try:
                        with workers(1) as pool:
                            yield from self._at_once(pool, shared, [mutant], [])
                    except BrokenProcessPool:
                        yield Record(mutant.number, {"crash": (0, "", KILLED)}, reached=1)

    def _at_once(
        self, pool: ProcessPoolExecutor, shared: Path, todo: list[Mutant], begun: list[Mutant]
    ) -> Iterator[Record]:
        """Try the mutants of `todo`, which are moved to `begun`."""
        running: dict[Future[Record], tuple[int, int]] = {}
        while True:
            while todo and len(running) < self.jobs and time.monotonic() < self.until:
                begun.append(mutant := todo.pop(0))
                reached = sum(ran.reaches(mutant.number) for ran in self.campaign.usual.values())
                order = self._order(mutant)
                work = self.directory / WORK
                future = pool.submit(try_mutant, str(shared), mutant.number, order[: self.most], work)
                running[future] = (reached, len(order))
            if not running:
                return
            for future in wait_for(running, return_when=FIRST_COMPLETED).done:
                record = future.result()
                record.reached, record.different = running.pop(future)
                yield record

    def _order(self, mutant: Mutant) -> list[At]:
        """The points where a mutant gives another value, the most promising for their time and each plan's in turn.

        Promising: mutants were often detected there, which counts more for the same function.
        """
        usual, function = self.campaign.usual, mutant.site.function

        def worth(at: At) -> float:
            detected = 4 * self.detected[function, at] + self.detected["", at] + 1
            return detected / (self.tries[at] + 2) / max(usual[at].wall_s, 0.1)

        own = (at for at in usual if not self.own or at[0] == mutant.number - 1)
        return in_turn(sorted((at for at in own if usual[at].differs(mutant.number)), key=worth, reverse=True))

    def _count(self, record: Record) -> None:
        """Keep a record, for the order of later mutants' points too."""
        self.records[record.number] = record
        self.tries.update(record.tried)
        for place, point, _ in record.detected.values():
            for function in ("", self.mutants[record.number - 1].site.function):
                self.detected[function, (place, point)] += 1

    def _line(self, record: Record) -> str:
        site = self.mutants[record.number - 1].site
        done, left_s = len(self.records) + len(self.absent), self.until - time.monotonic()
        where = f"{site.file.rpartition('/')[2]}:{site.line} {site.operator}"
        left = "" if left_s == float("inf") else f", {max(0, round(left_s / 60))} min left"
        return f"[{done}/{len(self.mutants)}] {where} … {record.verdict} {record.wall_s:.1f} s{left}"


def in_turn(best: Sequence[At]) -> list[At]:
    """The points in this order, and between them the first of each plan, then the second of each, and so on.

    Points of a plan are alike, and what one plan does not show another may.
    """
    counts, rank = Counter[int](), dict[At, int]()
    for at in best:
        rank[at] = counts[at[0]]
        counts[at[0]] += 1
    turns = sorted(best, key=rank.__getitem__)
    return list(dict.fromkeys(chain.from_iterable(zip(best, turns, strict=True))))


def _append(file: IO[str], line: Mapping[str, Any]) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()


def _lines(file: Path) -> list[dict[str, Any]]:
    """The lines of an earlier run; a last one that was not written to its end is removed."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        durable.write(file, whole.encode())
    return [json.loads(line) for line in whole.splitlines()]


def begin(directory: Path, head: Mapping[str, Any], resume: bool) -> None:
    """Make a run's directory, or check that it is of the same run.  Raises PlanError."""
    file = directory / HEAD
    if resume:
        if not file.is_file():
            raise PlanError(f"--resume: want the directory of a run of testctl mutate; there is none at {directory}")
        known = read_json(file)
        for name, value in head.items():
            if known.get(name) != value:
                raise PlanError(
                    f"--resume: {directory} is of a run with another {name}, {known.get(name)}; got {value}"
                )
    elif file.is_file():
        raise PlanError(f"{directory}: a run is there already; go on with --resume, or want another --out DIR")
    elif directory.exists() and any(directory.iterdir()):
        raise PlanError(f"{directory}: want a new directory; got one with something in it")
    with naming_path(directory, "nothing was run"):
        directory.mkdir(parents=True, exist_ok=True)
        if not resume:
            durable.write(file, json.dumps(head, indent=1).encode())
