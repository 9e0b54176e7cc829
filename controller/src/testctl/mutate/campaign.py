# SPDX-License-Identifier: Apache-2.0
"""All mutants of a run: points without any of them first, then each mutant on the points that reach it."""

from __future__ import annotations

import json
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.mutate.draw import Mutant
from testctl.mutate.trial import At, Campaign, Ran, Record, detections, run_point, try_mutant
from testctl.plan import Measured, Point
from testctl.system.worker_pool import workers

HEAD, POINTS, MUTANTS, WORK, SHARED = "run.json", "points.jsonl", "mutants.jsonl", ".work", "campaign.pickle"
"""Files of a run: what determines it; a line for each point without a mutant; a line for each mutant."""


@dataclass
class Bench:
    """Runs mutants and keeps what became of each.

    dropped  the mutants that do not compile
    most     points that a mutant is tried at
    until    time.monotonic() after which no other mutant is begun
    say      is called with a line of text
    """

    campaign: Campaign
    mutants: Sequence[Mutant]
    dropped: Sequence[int]
    directory: Path
    jobs: int
    most: int
    until: float
    say: Callable[[str], None]
    records: dict[int, Record] = field(default_factory=dict)
    killed: Counter[tuple[str, At]] = field(default_factory=Counter)
    tries: Counter[At] = field(default_factory=Counter)

    def run(self) -> None:
        """Every mutant that is not known, until the time is over.  Raises TestbedError where a worker is killed."""
        self._resume()
        with workers(self.jobs) as pool:
            self._without(pool)
        shared = self.directory / WORK / SHARED
        # No verdict needs a plan's tuples, of which some can't be pickled.
        plans = [replace(plan, assignments=()) for plan in self.campaign.plans]
        durable.write(shared, pickle.dumps(replace(self.campaign, plans=plans)))
        with (self.directory / MUTANTS).open("a", encoding="utf-8") as file:
            for record in self._with(shared):
                self._count(record)
                file.write(json.dumps(vars(record)) + "\n")
                file.flush()
                self.say(self._line(record))

    def _resume(self) -> None:
        for line in _lines(self.directory / POINTS):
            measured = Measured(line["measured"]["verdict"], line["measured"]["reason"], line["measured"]["metrics"])
            self.campaign.usual[int(line["plan"]), line["point"]] = Ran(**line["ran"], measured=measured)
        for line in _lines(self.directory / MUTANTS):
            record = Record(**line)
            record.found = {kind: (plan, point, text) for kind, (plan, point, text) in record.found.items()}
            self._count(record)

    def _without(self, pool: ProcessPoolExecutor) -> None:
        """The points without a mutant that are not known."""
        usual, work = self.campaign.usual, self.directory / WORK
        todo = [
            ((place, point.id), point)
            for place, plan in enumerate(self.campaign.plans)
            for point in plan.points
            if (place, point.id) not in usual
        ]
        waiting = {
            pool.submit(run_point, self.campaign.testbed, point, work / f"{at[0]}-{at[1]}"): (at, point)
            for at, point in todo
        }
        with (self.directory / POINTS).open("a", encoding="utf-8") as file:
            for number, (future, (at, point)) in enumerate(_as_completed(waiting), 1):
                ran = usual[at] = future.result()
                head = {"plan": at[0], "point": at[1], "measured": ran.measured.to_json()}
                head["measured"] |= {"metrics": ran.measured.metrics}
                head["ran"] = {name: value for name, value in vars(ran).items() if name != "measured"}
                file.write(json.dumps(head) + "\n")
                file.flush()
                found = detections(self.campaign.plans[at[0]], point, {point.id: ran.measured})
                why = f"; without any mutant: {next(iter(found.values()))[:200]}" if found else ""
                self.say(f"[{number}/{len(todo)}] point {point.id} {ran.measured.verdict} {ran.wall_s:.1f} s{why}")

    def _with(self, shared: Path) -> Iterator[Record]:
        """The record of each mutant that is not known; those that were tried when a worker was killed, one by one."""
        todo = [m for m in self.mutants if m.number not in self.records and m.number not in self.dropped]
        while todo and time.monotonic() < self.until:
            begun: list[Mutant] = []
            try:
                with workers(self.jobs) as pool:
                    yield from self._at_once(pool, shared, todo, begun)
                return
            except BrokenProcessPool:
                for mutant in (mutant for mutant in begun if mutant.number not in self.records):
                    try:
                        with workers(1) as pool:
                            yield from self._at_once(pool, shared, [mutant], [])
                    except BrokenProcessPool:
                        text = "its worker was killed from outside (out of memory?)"
                        yield Record(mutant.number, {"crash": (self.campaign.plans[0].name, "", text)}, reached=1)

    def _at_once(
        self, pool: ProcessPoolExecutor, shared: Path, todo: list[Mutant], begun: list[Mutant]
    ) -> Iterator[Record]:
        """Try the mutants of `todo`, which are moved to `begun`."""
        running: dict[Future[Record], tuple[int, int]] = {}
        while True:
            while todo and len(running) < self.jobs and time.monotonic() < self.until:
                begun.append(mutant := todo.pop(0))
                reached = [at for at, ran in self.campaign.usual.items() if ran.reached(mutant.number)]
                order = self._order(mutant, reached)
                work = self.directory / WORK
                future = pool.submit(try_mutant, str(shared), mutant.number, order[: self.most], work)
                running[future] = (len(reached), len(order))
            if not running:
                return
            for future in wait_for(running, return_when=FIRST_COMPLETED).done:
                record = future.result()
                record.reached, record.different = running.pop(future)
                yield record

    def _order(self, mutant: Mutant, reached: Sequence[At]) -> list[At]:
        """The points where it gives another value: first those that detected most mutants, of its function above all,
        for their time."""
        usual, function = self.campaign.usual, mutant.site.function

        def worth(at: At) -> float:
            killed = 4 * self.killed[function, at] + self.killed["", at] + 1
            return killed / (self.tries[at] + 2) / max(usual[at].wall_s, 0.1)

        return sorted((at for at in reached if usual[at].differs(mutant.number)), key=worth, reverse=True)

    def _count(self, record: Record) -> None:
        """For the order of later mutants' points."""
        self.records[record.number] = record
        function = self.mutants[record.number - 1].site.function
        names = {plan.name: place for place, plan in enumerate(self.campaign.plans)}
        for plan, point, _ in record.found.values():
            self.killed[function, (names[plan], point)] += 1
            self.killed["", (names[plan], point)] += 1
        for place, point in record.tried:
            self.tries[place, point] += 1


    def _line(self, record: Record) -> str:
        site = self.mutants[record.number - 1].site
        left = max(0, round((self.until - time.monotonic()) / 60))
        done = len(self.records) + len(self.dropped)
        where = f"{site.file.rpartition('/')[2]}:{site.line} {site.operator}"
        return f"[{done}/{len(self.mutants)}] {where} … {record.verdict} {record.wall_s:.1f} s, {left} min left"


def _as_completed(waiting: Mapping[Future[Ran], tuple[At, Point]]) -> Iterator[tuple[Future[Ran], tuple[At, Point]]]:
    left = dict(waiting)
    while left:
        for future in wait_for(left, return_when=FIRST_COMPLETED).done:
            _result(future, f"point {left[future][0][1]}")
            yield future, left.pop(future)


def _result(future: Future[Any], what: str) -> Any:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise TestbedError(f"{what}: its worker was killed from outside (out of memory?)") from error


def _lines(file: Path) -> list[dict[str, Any]]:
    """The lines of an earlier run; a last one that was not written to its end is left out."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        durable.write(file, whole.encode())
    return [json.loads(line) for line in whole.splitlines()]


def begin(directory: Path, head: Mapping[str, Any], resume: bool) -> None:
    """Make a run's directory, or check that it is of the same run.  Raises PlanError."""
    file = directory / HEAD
    if not file.is_file():
        if resume:
            raise PlanError(f"--resume: want the directory of a run of testctl mutate; there is none at {directory}")
        if directory.exists() and any(directory.iterdir()):
            raise PlanError(f"--out {directory}: want a new directory; got one with something in it")
        (directory / WORK).mkdir(parents=True, exist_ok=True)
        durable.write(file, json.dumps(head, indent=1).encode())
        return
    if not resume:
        raise PlanError(f"--out {directory}: a run is there already; go on with --resume, or want another --out DIR")
    known = json.loads(file.read_text(encoding="utf-8"))
    for name, value in head.items():
        if known.get(name) != value:
            raise PlanError(f"--resume: {directory} is of a run with another {name}: {known.get(name)}; got {value}")
    (directory / WORK).mkdir(exist_ok=True)
