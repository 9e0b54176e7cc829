# SPDX-License-Identifier: Apache-2.0
"""`pytest --plan`: plans as files to collect, their points as tests, and a directory of results.

With xdist the controller makes the directories and completes them; every worker has the same tests and runs those
that it is given.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from testctl_agent.spec.errors import PlanError, TestctlError

from testctl.compare.run_verdicts import metric_properties
from testctl.core.words import counted
from testctl.execution.finish import complete
from testctl.execution.options import Options
from testctl.metrics import metric_names
from testctl.plan import Expectation, ExpectationVerdict, Plan, Point, PointVerdict, load_plan
from testctl.plan.subset import subset
from testctl.pytest_plugin.lazy_run import SharedRun
from testctl.report.metrics import metric_texts
from testctl.results import IN_PROGRESS, RunPoint, RunWriter
from testctl.results.layout import same_names
from testctl.results.reader import load_points
from testctl.results.work import WORK, begin_work, clear_work
from testctl.testbeds.choose import find
from testctl.testbeds.testbed import Request

RESULTS = Path("results")
RUNS = "testctl_runs"
"""Key of a worker's input: plan's file -> the run in progress."""


class PlanSession:
    """The plans of one pytest session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._started, self._clock = datetime.now(UTC), time.monotonic()
        self._testbed = str(config.getoption("testctl_testbed"))
        self._said: list[str] = []
        self._writers: dict[Path, RunWriter] = {}
        try:
            find(self._testbed)
            if config.getoption("testctl_out") and (wrong := same_names(list(self._files()))):
                raise PlanError("\n".join(wrong))
            self.plans = {path: self._load(path) for path in self._files()}
            self._runs = self._open()
        except TestctlError as error:
            self.pytest_unconfigure()
            raise pytest.UsageError(str(error)) from error
        by_arguments = config.args_source == pytest.Config.ArgsSource.ARGS
        config.args[:] = [
            *(config.args if by_arguments else ()),
            *(str(p) for p in self.plans if str(p) not in config.args),
        ]

    def _files(self) -> Iterable[Path]:
        here = self._config.invocation_params.dir
        return dict.fromkeys((here / plan).resolve() for plan in self._config.getoption("testctl_plans"))

    def _load(self, path: Path) -> Plan:
        sets = self._config.getoption("testctl_sets")
        near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        return load_plan(near, metrics=metric_names(), testbed=self._testbed, overrides=sets)

    def _open(self) -> dict[Path, SharedRun]:
        """The runs: made here, or in a worker those that the controller made."""
        given = getattr(self._config, "workerinput", {})
        jobs = int(given.get("workercount", 1))
        run_points = {}
        for path, plan in self.plans.items():
            if given:
                place = Path(given[RUNS][str(path)]) if RUNS in given else Path()
            elif self._config.option.collectonly:
                place = Path()
            else:
                out = self._config.getoption("testctl_out")
                if out is None:
                    writer = RunWriter.create(self._config.invocation_params.dir / RESULTS, plan.name)
                else:
                    whole = self._config.invocation_params.dir / out
                    writer = RunWriter.create_at(whole if len(self.plans) == 1 else whole / plan.name)
                begin_work(writer.path)
                points = {"points": [point.to_json() for point in plan.points]}
                writer.write_plan(plan.text, points, plan.topology_text, plan.traces)
                self._writers[path] = writer
                place = self._writers[path].path

            def make_testbed(plan: Plan = plan) -> Any:
                return find(self._testbed).ready(plan.points, Request(jobs=jobs, commands=True))

            run_points[path] = SharedRun(plan, place, make_testbed)
        return run_points

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist is about to start a worker."""
        node.workerinput[RUNS] = {str(path): str(writer.path) for path, writer in self._writers.items()}

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        run = self._runs.get(file_path.resolve())
        return PlanFile.of(parent, file_path, run) if run is not None else None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        for path, writer in self._writers.items():
            ended = exitstatus not in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
            there = [point.id for point in load_points(writer.path)]
            if not there:
                continue
            if not ended:
                clear_work(writer.path / WORK)
                self._said.append(f"{writer.path}: not complete; what ended is kept: {counted(len(there), 'point')}")
                continue
            try:
                options = Options(writer.final.parent)
                wall_s = time.monotonic() - self._clock
                run = complete(subset(self.plans[path], there), writer, options, self._started, wall_s)
                counts = "  ".join(f"{count} {verdict}" for verdict, count in run.summary["counts"].items() if count)
                self._said.append(f"{run.path}: {counts} of {len(run.points)}; digest {run.digest[:12]}")
            except TestctlError as error:
                self._said.append(str(error))
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._said:
            terminalreporter.section("testctl")
            for line in self._said:
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        for writer in self._writers.values():
            writer.discard()


class PlanFile(pytest.File):
    """A plan: its points, and then its expectations over several points."""

    run: SharedRun

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, run: SharedRun) -> PlanFile:
        root = parent.config.rootpath
        made: PlanFile = cls.from_parent(parent, path=path, nodeid=os.path.relpath(path, root).replace(os.sep, "/"))
        made.run = run
        return made

    def collect(self) -> Iterator[pytest.Item]:
        plan = self.run.plan
        for point in plan.points:
            made: PointItem = PointItem.from_parent(self, name=f"{plan.name}[{name_of(plan, point)}]")
            made.point = point
            made.user_properties = [(f"{entity}.{param}", value) for entity, param, value in point.tuples]
            yield made
        for expectation in plan.expectations:
            if expectation.quantifier == "some" and expectation.bounds.given:
                claim: ClaimItem = ClaimItem.from_parent(self, name=f"{plan.name}[expect {expectation.name}]")
                claim.expectation = expectation
                yield claim


def name_of(plan: Plan, point: Point) -> str:
    """The tuples by which a point differs from the others of its plan; all of them where it is the only one."""
    swept = [index for index, a in enumerate(plan.assignments) if len(a.texts) > 1] or range(len(plan.assignments))
    texts = [f"{plan.assignments[index].key}={point.tuples[index][2]}" for index in swept]
    return ",".join([*texts, *([f"#{point.repeat}"] if plan.repeat > 1 else [])]).replace("::", ":")


class PlanItem(pytest.Item):
    """Base of points and expectations: has the plan, and reports messages instead of tracebacks."""

    @property
    def run(self) -> SharedRun:
        assert isinstance(self.parent, PlanFile)
        return self.parent.run

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class PointItem(PlanItem):
    """A point.  It runs during the test's setup, so that a broken testbed is an error and not a failure."""

    point: Point

    def setup(self) -> None:
        try:
            outcome = self.run.judged(self.point)
        except TestctlError as error:
            outcome = PointVerdict("broken", str(error), self.point.id)
        if outcome.verdict == "skip":
            pytest.skip(outcome.reason)
        self.user_properties.append(("verdict", outcome.verdict))
        if outcome.verdict != "broken":
            self.user_properties += metric_properties(self.run.result(self.point), expected_of(self.run.plan))
        if outcome.verdict in ("broken", "invalid"):
            pytest.fail(f"{outcome.verdict}: {outcome.reason}", pytrace=False)
        self._reason = outcome.reason

    def runtest(self) -> None:
        if self._reason:
            texts = metric_texts(self.run.result(self.point), expected_of(self.run.plan))
            pytest.fail(explain(self._reason, self.run.result(self.point), texts), pytrace=False)


class ClaimItem(PlanItem):
    """An expectation that one of several points has to meet: judged once, after all of them were run."""

    expectation: Expectation

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, max(0, self.expectation.place.line - 1), self.name

    def setup(self) -> None:
        try:
            outcome = self.run.claimed(self.expectation)
        except TestctlError as error:
            outcome = ExpectationVerdict(self.expectation.name, "broken", str(error), ())
        if outcome.verdict == "skip":
            pytest.skip(outcome.detail)
        if outcome.verdict in ("broken", "invalid"):
            pytest.fail(f"{outcome.name}: {outcome.verdict}: {outcome.detail}", pytrace=False)
        self._said = outcome

    def runtest(self) -> None:
        if self._said.verdict == "fail":
            pytest.fail(f"{self._said.name}: {self._said.detail}", pytrace=False)


def expected_of(plan: Plan) -> list[str]:
    """The metrics that a plan expects something of."""
    return [expectation.metric for expectation in plan.expectations]


def explain(reason: str, point: RunPoint, texts: Iterable[tuple[str, str, str]]) -> str:
    """Why a point fails: the expectations, the metrics of each flow (`metric_texts`), all tuples."""
    lines = [reason, "", f"point {point.id} of {point.path.parents[1].name.removesuffix(IN_PROGRESS)}"]
    for flow, of_flow in groupby(texts, itemgetter(0)):
        lines.append(f"{flow}: {'  '.join(f'{metric} {text}' for _, metric, text in of_flow)}")
    lines += [f"  {entity}.{param} = {value}" for entity, param, value in point.tuples]
    return "\n".join(lines)
