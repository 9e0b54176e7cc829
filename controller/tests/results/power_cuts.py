# SPDX-License-Identifier: Apache-2.0
"""Cuts the power of a file system at random moments.  Usage, in a mount namespace of its own: WHAT WHERE CUTS SEED

Of `run`: each attempt goes on with --resume where the one before was cut off.  Of `writers`: each begins anew.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from testctl.lab import kernel
from testctl.results import layout, load_run
from testctl.results.atomic import write_json
from testctl.results.manifest import difference
from testctl_agent.system import durable

from controller.tests.results.beds import go, plan
from controller.tests.results.powercut import CUT, ENDED, Disk, disk, in_child

LATER_S = 0.02
"""A cut is up to so much later than the step before it, while the kernel writes what it likes."""


def steps_of(what: Callable[[], object], where: Path) -> int:
    """How many steps something takes, in a process of its own."""
    counted = where / "steps"

    def count(number: int, _: str) -> None:
        counted.write_text(str(number), encoding="ascii")

    assert in_child(what, where / "log", count) == ENDED, (where / "log").read_text(encoding="utf-8")
    return int(counted.read_text(encoding="ascii"))


def cut_at(power: Disk, at: int, pause_s: float, what: Callable[[], object], log: Path) -> int:
    """Run something and cut the power after its step `at`, or right after its end; power is back then."""

    def on_step(number: int, _: str) -> None:
        if number == at:
            time.sleep(pause_s)
            power.cut()
            os._exit(CUT)

    ended = in_child(what, log, on_step)
    assert ended in (CUT, ENDED), f"{ended}: {log.read_text(encoding='utf-8') if log.exists() else ''}"
    if ended == ENDED:
        power.cut()
    power.again()
    return ended


def assert_whole(results: Path) -> None:
    """Everything that is called complete, in every run, is there with all its bytes."""
    for run in results.glob("2*"):
        for point in run.glob("points/[!.]*"):
            said = json.loads((point / layout.VERDICT).read_text(encoding="utf-8"))
            assert difference(point, said["files"]) == "", point
        if run.name.endswith(layout.IN_PROGRESS):
            continue
        found = load_run(run)
        assert [point.id for point in found.points] == [point["id"] for point in found.summary["points"]]
        assert {point.id for point in found.points} == {point.id for point in plan().points}
        assert (run / layout.REPORT).read_text(encoding="utf-8").rstrip().endswith("</html>")
        for name in ("paper.png", "paper-1.png", "paper-2.png"):
            figure = (run / layout.FIGURES / name).read_bytes()
            assert (figure[:4], figure[-8:-4]) == (b"\x89PNG", b"IEND"), name
        assert found.versions["testctl"]
        assert found.plan_text == plan().text
    if (results / layout.LATEST).is_symlink():
        assert (results / layout.LATEST / layout.SUMMARY).is_file()


def cut_runs(power: Disk, where: Path, cuts: int, chance: random.Random) -> None:
    steps = steps_of(lambda: go(where / "counted"), where)
    undisturbed = load_run(where / "counted" / layout.LATEST)
    complete = 0
    for number in range(cuts):
        results = power.place / f"results{complete}"
        at, pause_s = chance.randint(1, steps + steps // 10), chance.random() * LATER_S
        ended = cut_at(power, at, pause_s, lambda results=results: go(results, resume=True), where / "log")
        assert_whole(results)
        if ended == ENDED or number == cuts - 1:
            if ended != ENDED:
                words = in_child(lambda results=results: go(results, resume=True), where / "log", lambda *_: None)
                assert words == ENDED, (where / "log").read_text(encoding="utf-8")
            assert_whole(results)
            again = load_run(results / layout.LATEST)
            assert (again.complete, again.digest) == (True, undisturbed.digest)
            assert {point.verdict for point in again.points} == {"pass"}
            shutil.rmtree(results)
            complete += 1
    print(f"{cuts} power cuts among {steps} steps of a run and its resumption; {complete} runs completed")


def cut_writers(power: Disk, where: Path, cuts: int, chance: random.Random) -> None:
    """A kernel's name and directory, noise.json: what a writer reported as kept is there, complete."""
    claims = where / "claims"

    def write(home: Path) -> None:
        def claim(what: str) -> None:
            with claims.open("a", encoding="ascii") as file:
                file.write(f"{what}\n")

        os.environ["TESTCTL_CACHE"] = str(home / "cache")
        fresh = home / "cache" / "kernels" / "own-0123456789abcdef.new"
        durable.make_directory(fresh.parent)
        fresh.mkdir()
        (fresh / "linux").write_bytes(b"k" * 100_000)
        durable.publish(fresh, fresh.with_suffix(""))
        kernel.remember(kernel.Kernel("own", "0123456789abcdef", fresh.with_suffix("")))
        claim("kernel")
        for number in range(3):
            write_json(home / "noise.json", {"number": number, "text": "x" * 5000})
            claim(f"noise {number}")

    steps = steps_of(lambda: write(where / "counted"), where)
    for number in range(cuts):
        claims.write_text("", encoding="ascii")
        home = power.place / f"home{number}"
        at, pause_s = chance.randint(1, steps + steps // 10), chance.random() * LATER_S
        cut_at(power, at, pause_s, lambda home=home: write(home), where / "log")
        said = claims.read_text(encoding="ascii").splitlines()
        named = home / "cache" / "kernels"
        for found in named.glob("own-*[!w]"):
            assert (found / "linux").read_bytes() == b"k" * 100_000
        if "kernel" in said:
            assert (named / "own.name").read_text(encoding="utf-8") == "own-0123456789abcdef"
        noises = [int(one.split()[1]) for one in said if one.startswith("noise")]
        if noises:
            kept = json.loads((home / "noise.json").read_text(encoding="utf-8"))
            assert kept["number"] >= noises[-1]
            assert kept["text"] == "x" * 5000
    print(f"{cuts} power cuts among {steps} steps of the other writers")


def main() -> None:
    what, where, cuts, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    with disk(where) as power:
        {"run": cut_runs, "writers": cut_writers}[what](power, where, cuts, random.Random(seed))


if __name__ == "__main__":
    main()
