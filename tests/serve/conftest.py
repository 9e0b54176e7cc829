# SPDX-License-Identifier: Apache-2.0
"""A results directory from the lab, a server over it, and a headless Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testctl.report import write_report

from controller.tests.serve.conftest import make_run
from controller.tests.support.synthetic_sweep import make_sweep
from tests.cli_commands import TESTCTL, call
from tools.bench_serve import CHROMIUM
from tools.bench_serve import PLAN as FLOW

HERE = f"{Path(__file__).parent}/"


class LatePage(AssertionError):
    """A page did not say that it is drawn; what it was doing instead."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test whose page is late runs once more: on a busy machine Chromium now and then gives a page no frames.

    `-raR` lists those as RERUN, with what the page was doing.  Any other failure stands at once.
    """
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["LatePage", "TimeoutError"]))


MATRIX = """
about: four short points
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, [20kB, 200kB]]
  - [switch, delay, 2ms]
  - [bulk, duration, 400ms]
  - [bulk, pattern, "stall at 100ms for 150ms"]
expect:
  - {name: little waits, metric: latency_max_us, max: 8000}
"""

MILLION = f'{FLOW}  - [bulk, pattern, "stall at 500ms for 40ms"]\n'
"""The bench's million packets, and a silence of the application."""


@dataclass(frozen=True)
class Served:
    """What the tests look at: the results, the server's address, the runs' names and the large point."""

    results: Path
    address: str
    matrix: str
    million: str
    point: str


def run(results: Path, name: str, plan: str) -> Path:
    """The directory of a run of a plan in the lab."""
    file = results.parent / f"{name}.yaml"
    file.write_text(plan, encoding="utf-8")
    out = results / f"20260101T12000{len(list(results.iterdir()))}Z-{name}"
    done = call(results.parent, "run", str(file), "--out", str(out), code=None)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return out


@contextmanager
def serving(results: Path, *words: str) -> Iterator[list[str]]:
    """The lines that `testctl serve` prints; it runs until the end."""
    argv = [*TESTCTL, "serve", "--results", str(results), "--port", "0", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield [process.stdout.readline() for _ in range(3 if "--token-file" in words else 2)]
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Runs of the lab: four points twice, a million packets, one in progress and one damaged."""
    results = tmp_path_factory.mktemp("serve") / "results"
    results.mkdir()
    matrix = run(results, "matrix", MATRIX)
    again = shutil.copytree(matrix, results / "20260101T120001Z-matrix")  # the lab would make the same once more
    million = run(results, "million", MILLION)
    progress = results / "20260102T120000Z-matrix.in-progress"
    shutil.copytree(again, progress)
    (progress / "summary.json").unlink()
    for path in progress.glob("points/*/verdict.json"):  # as it is until the run's end: nothing is judged
        said = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(said | said["measured"]), encoding="utf-8")
    damaged = results / "20260103T120000Z-broken_off"
    shutil.copytree(again, damaged)
    (damaged / "summary.json").write_text('{"plan": "broken_off", ', encoding="utf-8")
    (point,) = (path.name for path in (million / "points").iterdir())
    with serving(results) as lines:
        yield Served(results, lines[1].split()[1], matrix.name, million.name, point)


@dataclass(frozen=True)
class Shown:
    """A server over runs that need no lab: their names, and their reports by the same words."""

    address: str
    names: dict[str, str]
    reports: dict[str, str]

    def at(self, place: str) -> str:
        """The address of a view, with the runs' words in braces."""
        return self.address + place.format(**self.names)


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A sweep, recorded connections of two days, and a point with two flows."""
    results = tmp_path_factory.mktemp("shown") / "results"
    sweep = make_sweep(results, day=3)
    two = [make_run(results, day) for day in (1, 2)][-1]
    flows = make_run(results, 4, {"all_instruments": "pass"}, "flows")
    summary = flows / "summary.json"
    found = json.loads(summary.read_text(encoding="utf-8"))
    summary.write_text(json.dumps({"overrides": ["a.bytes=1MB"], **found}, indent=1), encoding="utf-8")
    (flows / "coverage").mkdir()
    (flows / "coverage" / "index.html").write_text("<!doctype html><title>pages</title><h1>What 1 point executed</h1>")
    runs = {"sweep": sweep.path, "two": two, "flows": flows}
    broken = next(point.id for point in sweep.points if point.verdict == "broken")
    reports = {word: write_report(path).as_uri() for word, path in runs.items()}
    with serving(results) as lines:
        names = {word: path.name for word, path in runs.items()} | {"broken": broken}
        yield Shown(lines[1].split()[1], names, reports)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield running
        running.close()


@pytest.fixture
def open_shown(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address in a window, and waits until that view is drawn, if any; nothing may go wrong in a page."""
    errors: list[str] = []
    contexts = []

    def start(address: str, drawn: str = "", dark: bool = False, width: int = 1280, height: int = 900) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        if drawn:
            wait(page, drawn)
        return page

    yield start
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def open_logged(open_shown: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """As open_shown; nor may an error have been logged at the end."""
    errors: list[str] = []

    def start(address: str, drawn: str, **window: Any) -> Any:
        page = open_shown("about:blank", **window)
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.errors = errors
        page.goto(address)
        wait(page, drawn)
        return page

    yield start
    assert errors == []


@pytest.fixture
def open_page(open_logged: Callable[..., Any], served: Served) -> Callable[..., Any]:
    """Opens a view at an address of the page, in a window of a size."""
    return lambda address="", what="runs", **window: open_logged(served.address + address, what, **window)


def after(page: Any, act: Callable[[], Any], what: str = "figures") -> None:
    """Do it, and wait until the figures on the screen show what it asked for, or another view is drawn."""
    page.evaluate("() => { document.documentElement.dataset.drawn = ''; }")
    act()
    wait(page, what)


def go(page: Any, address: str, what: str) -> None:
    """To another view of the same page, as a link leads there."""
    after(page, lambda: page.evaluate("address => { location.hash = address; }", address), what)


def wait(page: Any, what: str) -> None:
    """Until that view is drawn: the figures in sight are also drawn when all are."""
    from playwright.sync_api import TimeoutError as TooLate

    drawn = [f'html[data-drawn="{one}"]' for one in ({"figures", "all"} if what == "figures" else {what})]
    try:
        page.wait_for_selector(", ".join(drawn), state="attached")
    except TooLate:
        raise LatePage(f"want the page to say {what!r}; it is {page.evaluate(STATE)}") from None


STATE = """() => ({
  drawn: document.documentElement.dataset.drawn, visible: document.visibilityState, hash: location.hash,
  asked: performance.getEntriesByType('resource').map(
    ({name, responseStatus, responseEnd}) => [new URL(name).pathname, responseStatus, Math.round(responseEnd)]),
  plots: [...document.querySelectorAll('.plot')].map(
    (one) => [one.dataset.figure, one.className, one.getAttribute('aria-label')]),
  text: document.body.innerText.slice(0, 2000),
})"""
"""What a page that is late is doing."""
