# SPDX-License-Identifier: Apache-2.0
"""`testctl serve` in a headless Chromium: from a click to the drawn page, over a million packets."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

PLAN = """
about: one CUBIC flow at 2.5 Gb/s, more than a million packets
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 2.5gbit]
  - [switch:receiver, buffer, 1MB]
  - [switch, delay, 500us]
  - [bulk, duration, 1200ms]
"""

CLOCK = """
addEventListener("click", () => { window.clicked = performance.now(); window.took = null; }, true);
addEventListener("testctl:drawn", (event) => requestAnimationFrame(() => setTimeout(() => {
  window.took = performance.now() - window.clicked;
  window.which = event.detail;
})));
"""
"""Takes the time in the browser, from the click until what it asked for has been painted."""

ROUNDS = 3

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
"""Chromium: without a window it takes half the processor time, where Debian's package of that is installed."""


@contextmanager
def server(results: Path) -> Iterator[str]:
    """The address of a server over these results."""
    argv = [sys.executable, "-m", "testctl.cli.main", "serve", "--results", str(results), "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            yield lines[1].split()[1]
        finally:
            process.terminate()


def make_run(where: Path) -> Path:
    """The run that is looked at, below the directory that is returned."""
    plan = where / "million.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    results = where / "results"
    argv = [sys.executable, "-m", "testctl.cli.main", "run", str(plan), "--results", str(results)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return results


def serve(where: Path) -> None:
    """Opening a point, and zooming into it from all of it to microseconds."""
    if CHROMIUM is None:
        print("serve: left out: chromium is not installed")
        return
    from playwright.sync_api import sync_playwright

    results = make_run(where)
    opened: list[float] = []
    zoomed: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(ROUNDS):  # each with a server that has read nothing yet
            with server(results) as address:
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.add_init_script(CLOCK)
                page.goto(address)
                _after(page, "runs", lambda: None)
                _after(page, "run", page.get_by_role("link", name="million", exact=True).click)
                opened.append(_after(page, "figures", page.locator("a[data-mark]").first.click))
                packets = page.get_by_text("packets,").first.inner_text()
                plus = page.get_by_role("button", name="Zoom in ( + )")
                for _ in range(11):
                    zoomed.append(_after(page, "figures", plus.click))
                width = page.get_by_label("What is shown").inner_text()
                page.close()
        browser.close()
    print(f"serve, {packets}: opening it, from the click to the drawn page: median {median(opened):.0f} ms, "
          f"longest {max(opened):.0f} ms of {len(opened)}")  # fmt: skip
    print(f"serve, zooming from all of it to {width}: median {median(zoomed):.0f} ms, longest {max(zoomed):.0f} ms "
          f"of {len(zoomed)}")  # fmt: skip


def _after(page: Any, what: str, act: Any) -> float:
    """ms from what `act` clicks until that view was painted."""
    page.evaluate("() => { window.which = null; window.took = null; }") if act.__name__ != "<lambda>" else None
    act()
    page.wait_for_function("what => window.which === what", arg=what, timeout=60_000)
    return float(page.evaluate("() => window.took ?? 0"))
