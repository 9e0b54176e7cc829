# SPDX-License-Identifier: Apache-2.0
"""testctl aa."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from testctl.cli import complete
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson, Results
from testctl.cli.runs import KernelName, PlanFile, Sets, Without, load
from testctl.testbeds.choose import find
from testctl.testbeds.testbed import Request


def aa(
    file: PlanFile,
    testbed: Annotated[
        str,
        typer.Option("--testbed", metavar="netns|INVENTORY", help="where the point runs; a rack has --jobs 1 alone"),
    ] = "netns",
    jobs: Annotated[str, typer.Option("--jobs", "-j", metavar="N,…", help="how many at once, beside alone")] = "1,2",
    repeat: Annotated[int, typer.Option("--repeat", min=2, max=1000, help="rounds of each")] = 5,
    point: Annotated[str, typer.Option("--point", metavar="ID", help="which point (default: the first)")] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="a primary metric (default: throughput and the expected ones)",
            autocompletion=complete.metrics,
        ),
    ] = None,
    factor: Annotated[float, typer.Option("--factor", min=1.0, help="how much more than alone it may spread")] = 2.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="of the bootstrap samples")] = 1,
    fit: Annotated[bool, typer.Option("--fit", help="propose jitter for a lab's hosts, as these have it")] = False,
    sets: Sets = None,
    kernel: KernelName = None,
    without: Without = None,
    results: Results = Path("results"),
    as_json: AsJson = False,
) -> None:
    """A/A check: run one point again and again, and say what the noise is and how many may run at once."""
    plan = load(file, testbed, sets, kernel, 10_000, without)

    from testctl.noise.aa_test import check_of, run_check
    from testctl.report import Progress

    check = check_of(plan, jobs, repeat, point, metric or (), factor, seed, fit)
    chosen = find(testbed)
    with interruptible("nothing is kept", chosen.interrupted):
        ready = chosen.ready([check.point], Request(jobs=check.jobs[-1], commands=True))
        progress = Progress(repeat * len(check.jobs), Console(stderr=True), what="rounds")
        measured, place = run_check(plan, ready, check, results, progress)
    if as_json:
        print(json.dumps(measured, indent=1))
    else:
        _print(measured, place)


def _print(measured: dict[str, Any], place: Path) -> None:
    print(f"alone, {measured['repeat']} times:")
    for name, noise in measured["alone"].items():
        low, high = noise["cv_95"]
        print(f"  {name}: mean {noise['mean']:.6g}, varies by {noise['cv']:.2%} (95 %: {low:.2%} to {high:.2%})")
    for jobs, level in measured["beside"].items():
        verdict = ("yes" if level["may"] else "no") + ("" if level["sure"] else ", but the interval leaves it open")
        print(f"{jobs} at once: {verdict}: {level['why']}")
    for host, jitter in measured.get("jitter", {}).items():
        _print_jitter(host, jitter)
    print(f"at most {measured['most_at_once']} at once\nnoise  {place / 'noise.json'}")


def _print_jitter(host: str, jitter: dict[str, Any]) -> None:
    from testctl.noise.fit import Jitter

    model = Jitter(jitter["distribution"], jitter["mean_ns"], jitter["tail_ns"], jitter["tail_every"])
    print(f"{host} was late, at {jitter['interrupts']} interrupts; in a lab:")
    for values in model.tuples(host):
        print(f"  - [{', '.join(values)}]")
    for name, measured in jitter["measured_us"].items():
        print(f"    {name}: measured {measured:g} µs, with these tuples {jitter['model_us'][name]:g} µs")
