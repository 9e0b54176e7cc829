# SPDX-License-Identifier: Apache-2.0
"""testctl replay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console
from testctl_agent.spec.errors import PlanError

from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson, Commands
from testctl.cli.shows import PointId, RunDir

if TYPE_CHECKING:
    from testctl.replay.command import Replay


def replay(
    run: RunDir,
    point: PointId,
    packets: Annotated[
        Literal["headers", "full"], typer.Option("--packets", help="full: capture whole packets at every host")
    ] = "headers",
    events: Annotated[bool, typer.Option("--events", help="record every TCP event of every host")] = False,
    kernel_log: Annotated[bool, typer.Option("--kernel-log", help="keep the messages of the lab's kernel")] = False,
    trace: Annotated[
        list[str] | None,
        typer.Option("--trace", metavar="EVENT", help="record tracepoints, such as 'tcp:*'; may be repeated"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="default: results/replay/<time>-<plan>-<point>")
    ] = None,
    commands: Commands = False,
    gdb: Annotated[
        bool, typer.Option("--gdb", help="the lab's kernel in gdb at this terminal; `run` there starts the point")
    ] = False,
    script: Annotated[
        list[Path] | None, typer.Option("-x", metavar="FILE", help="of --gdb: commands for it; it ends after them")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a point again with more instruments, and prove by its digest that it went the same way.

    Exit 1 when it did not, 3 when it could not be compared.
    """
    if gdb or script:
        others = {"--packets": packets == "full", "--events": events, "--kernel-log": kernel_log, "--trace": trace,
                  "--out": out, "--json": as_json}  # fmt: skip
        if given := [name for name, value in others.items() if value]:
            raise PlanError(f"--gdb: want it without {', '.join(given)}: nothing is recorded or kept of a lab in gdb")
        _in_gdb(run, point, script or [], gdb, commands)
    from testctl.replay.command import replay as again
    from testctl.replay.instruments import Instruments
    from testctl.results import load_run

    original = load_run(run)
    id_ = original.point(point).id
    instruments = Instruments(packets == "full", events, kernel_log, tuple(trace or ()))
    with interruptible("nothing was kept"):
        attached = ", ".join(instruments.words) or "nothing more"
        progress = Console(stderr=True)
        with progress.status(f"point {id_} runs again"):
            if not progress.is_terminal:
                progress.print(f"point {id_} runs again, with {attached}", highlight=False)
            done = again(original, id_, instruments, out, Path("results") / "replay", commands)
    if as_json:
        print(json.dumps(_json(done, instruments.words), indent=1))
    else:
        _print(done, attached)
    sys.exit(3 if done.identity is None else 0 if done.identity.same else 1)


def _in_gdb(run: Path, point: str, scripts: list[Path], gdb: bool, commands: bool) -> NoReturn:
    """A session of gdb; exit 1 if the point went another way in it."""
    from testctl.replay.debug import debug
    from testctl.results import load_run

    if not gdb:
        raise PlanError("-x: want it with --gdb; it is a file of gdb's commands")
    done = debug(load_run(run), point, scripts, commands)
    proof = {None: "the lab ended before its point did", True: "the same digest as the run's", False: "another digest"}
    print(f"{done.kernel.binary}: {proof[done.same]}")
    sys.exit(1 if done.same is False else 0)


def _print(done: Replay, attached: str) -> None:
    point = done.point
    lines = [
        f"point {point.id} again, with {attached}: {point.verdict}" + (f", {point.reason}" if point.reason else "")
    ]
    if done.unlike:
        lines.append("not what the run had: " + "; ".join(done.unlike))
    proof = done.identity
    if proof is None:
        lines.append("nothing to compare: one of the two has no records")
    elif proof.same:
        lines.append(f"the same: {proof.words()}, digest {proof.digests[0]}")
    else:
        lines.append(
            f"different: digest {proof.digests[0][:12]} then, {proof.digests[1][:12]} now, over {proof.words()}"
        )
        where = proof.difference.words() if proof.difference else "no row differs: the run's digest is of other columns"
        lines.append(f"first: {where}")
    lines += [f"wrote {file}" for file in done.files]
    lines.append(f"run   {done.run.path}")
    print("\n".join(lines))


def _json(done: Replay, attached: list[str]) -> dict[str, Any]:
    proof = done.identity
    return {
        "point": done.point.id,
        "verdict": done.point.verdict,
        "reason": done.point.reason,
        "instruments": attached,
        "unlike": list(done.unlike),
        "same": proof.same if proof else None,
        "compared": proof.compared if proof else {},
        "digests": list(proof.digests) if proof else [],
        "difference": proof.difference.words() if proof and proof.difference else "",
        "files": [str(file) for file in done.files],
        "run": str(done.run.path),
    }
