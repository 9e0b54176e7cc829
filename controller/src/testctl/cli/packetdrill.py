# SPDX-License-Identifier: Apache-2.0
"""testctl packetdrill."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.cli import complete, verdict_files
from testctl.cli.interrupt import interruptible
from testctl.cli.options import AsJson
from testctl.cli.source import HELP, METAVAR, built
from testctl.lab import packetdrill as scripts
from testctl.lab.built import kernel_for
from testctl.lab.packetdrill import CaseEnd
from testctl.lab.programs import CASE_PATH
from testctl.lab.source import find, split_revision
from testctl.lab.tree_kernel import SOURCE
from testctl.lab.tree_part import part_of
from testctl.system.say import say
from testctl.testbeds.point_spec import DEFAULT_KERNEL

if TYPE_CHECKING:
    from testctl.compare.verdicts import Verdicts

SIGNS = {"pass": "✓", "fail": "✗", "broken": "!"}
STATUS = {"pass": "pass", "fail": "fail", "broken": "error"}


def packetdrill(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]…", help="scripts, directories of them, or names in the kernel's tree: 'tcp_sack*.pkt'"
        ),
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="NAME", autocompletion=complete.kernels)] = None,
    source: Annotated[str | None, typer.Option("--source", metavar=METAVAR, help=HELP)] = None,
    testbed: Annotated[
        Literal["lab", "netns"], typer.Option("--testbed", help="netns: namespaces of the running kernel; needs root")
    ] = "lab",
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="labs at once")] = os.cpu_count() or 1,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, max=10**7, help="of wall time, for one script")
    ] = 300.0,
    junit: verdict_files.Junit = None,
    as_json: AsJson = False,
) -> None:
    """Run packetdrill's scripts on a kernel in virtual time: by default those of its own tree.

    packetdrill is the one on PATH, or at $TESTCTL_PACKETDRILL.  Exit code 0 all passed, 1 some failed, 3 some could
    not be run.
    """
    from testctl.testbeds.packetdrill import Order, execute

    if kernel and source:
        raise PlanError("--kernel and --source: want one of them")
    verdict_files.check({"junit": junit})
    program = scripts.program()
    scripts.check_needs(CASE_PATH)
    tree = _tree(kernel, source)
    cases = scripts.cases_of(scripts.scripts_of(paths or [], tree), tree)
    binary, on = _kernel(kernel, source, testbed)
    order = Order(program, tuple(cases), binary, timeout, jobs)
    show = _Progress(len(cases))
    with interruptible(""):
        ends = execute(order, show)
    if junit:
        from testctl.compare import write_verdicts

        write_verdicts(_verdicts(ends, on), {"junit": junit})
    if as_json:
        print(json.dumps(_json(ends, on, scripts.fingerprint(program)), indent=1))
    else:
        _print(ends, on, scripts.fingerprint(program))
    verdicts = {end.verdict for end in ends}
    sys.exit(3 if "broken" in verdicts else 1 if "fail" in verdicts else 0)


def _tree(kernel: str | None, source: str | None) -> Path | None:
    """The directory of the scripts of a kernel's own source, if it has some and is at hand."""
    try:
        origin = find(SOURCE, *split_revision(source)) if source else find(kernel or DEFAULT_KERNEL)
    except TestbedError:
        if source:
            raise
        return None  # a kernel that was built from a tree, which may be anywhere
    return part_of(origin, scripts.IN_TREE)


def _kernel(kernel: str | None, source: str | None, testbed: str) -> tuple[Path | None, str]:
    """The lab's kernel and its name in messages; None for the running one."""
    if testbed == "netns":
        return None, f"Linux {os.uname().release}, the running kernel"
    of_lab = built(source) if source else kernel_for(kernel or DEFAULT_KERNEL)
    return of_lab.binary, f"Linux {of_lab.release} in the lab"


class _Progress:
    """A line for each case that did not pass, and, on a terminal, how many have ended."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def __call__(self, end: CaseEnd) -> None:
        self._done += 1
        mark = "\r" if sys.stderr.isatty() else ""
        if end.verdict != "pass":
            print(mark, end="", file=sys.stderr)
            say(f"{SIGNS[end.verdict]} {end.case.name}: {end.text.splitlines()[0]}")
        if mark:
            print(f"\r{self._done}/{self._total}", end="\n" if self._done == self._total else "", file=sys.stderr)


def _print(ends: Sequence[CaseEnd], on: str, program: str) -> None:
    """A table of all verdicts, the texts of cases that did not pass, and the counts."""
    from testctl.report.terminal import plain_console

    variants = list(dict.fromkeys(end.case.variant for end in ends))
    by_script: dict[Path, dict[str, CaseEnd]] = {}
    for end in ends:
        by_script.setdefault(end.case.script, {})[end.case.variant] = end
    table = Table("script", *variants, box=None)
    for script, by_variant in by_script.items():
        verdicts = [by_variant[name].verdict if name in by_variant else "" for name in variants]
        table.add_row(script.name, *(f"{SIGNS[verdict]} {verdict}" if verdict else "" for verdict in verdicts))
    plain_console(Console()).print(table)
    for end in ends:
        if end.verdict != "pass":
            say(f"{SIGNS[end.verdict]} {end.case.name}: " + end.text.replace("\n", "\n    "), sys.stdout)
    print(f"{_counts(ends)}, on {on}")
    print(f"packetdrill {program}")


def _counts(ends: Sequence[CaseEnd]) -> str:
    count = Counter(end.verdict for end in ends)
    parts = [f"{count['pass']} passed", f"{count['fail']} failed"]
    parts += [f"{count['broken']} could not be run"] if count["broken"] else []
    return f"{len({end.case.script for end in ends})} scripts, {len(ends)} cases: {', '.join(parts)}"


def _json(ends: Sequence[CaseEnd], on: str, program: str) -> dict[str, Any]:
    return {
        "kernel": on,
        "packetdrill": program,
        "cases": [
            {
                "script": str(end.case.script),
                "variant": end.case.variant,
                "verdict": end.verdict,
                "words": end.text,
                "seconds": round(end.virtual_s, 6),
            }
            for end in ends
        ],
    }


def _verdicts(ends: Sequence[CaseEnd], on: str) -> Verdicts:
    from testctl.compare.verdicts import Change, JudgedCase, Verdicts

    cases = tuple(
        JudgedCase(
            end.case.name,
            end.case.name,
            STATUS[end.verdict],  # type: ignore[arg-type]
            (Change("packetdrill", "worse", end.text),) if end.text else (),
            end.virtual_s,
        )
        for end in ends
    )
    return Verdicts(f"testctl packetdrill on {on}", "", _counts(ends), cases, suite="packetdrill")
