# SPDX-License-Identifier: Apache-2.0
"""testctl lab exec."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from testctl.cli import complete
from testctl.cli.interrupt import INTERRUPTED, interruptible
from testctl.cli.options import Family, Writable
from testctl.lab.programs import Ended, Program, exit_code
from testctl.system import temporary

EXEC = "testctl-exec-"
"""Prefix of the directory of the outputs."""
FAULTY = 1
"""The exit code where all programs succeed on a kernel that reports a fault of its own."""


def exec_(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]", help="a program and its arguments; no shell reads them")
    ] = None,
    topology: Annotated[
        str,
        typer.Option(
            "--topology",
            metavar="NAME",
            autocompletion=complete.topologies,
            help="a file of lab/topologies, or ./mine.yaml; with its parameters: star:hosts=8",
        ),
    ] = "pair",
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="NAME", autocompletion=complete.kernels)] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST[=COMMAND]",
            help="where COMMAND is run (default: the first host); or another program",
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ENTITY.PARAM=VALUE", help="a setting, as of a plan: switch.delay=5ms"),
    ] = None,
    family: Family = "4",
    capture: Annotated[
        Path | None,
        typer.Option("--capture", metavar="FILE", help="write the packets of the host; of several to FILE-HOST"),
    ] = None,
    writable: Writable = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, max=10**7, help="of wall time, at most")
    ] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for machines, with the outputs as text")] = False,
) -> None:
    """Run any program in virtual time: testctl lab exec -- ping -c 3 receiver.

    Its output and exit code are those of the command; a warning of the lab's kernel is an error.  Programs of
    several hosts start in their order, each when the one before it waits; they are ended after the last one, and
    their lines begin with their host's name.
    """
    from testctl.testbeds.lab_exec import Order, captures_of, execute, point_for, programs_of, with_outputs

    point = point_for(topology, kernel, sets or [], family)
    programs = programs_of(host or [], command or [], point.topology)
    order = Order(point, programs, captures_of(capture, programs), writable, timeout, family)
    with interruptible(), temporary.temporary(EXEC) as home:
        outputs = [with_outputs(program, home) for program in programs]
        shown = _Live(outputs[0]) if len(outputs) == 1 and not as_json else None
        try:
            ends, faults = execute(order, home, shown.more if shown else lambda: None)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        finally:
            if shown is None and not as_json:
                _print_lines(outputs)
        code = exit_code(ends) or (FAULTY if faults else 0)
        if as_json:
            print(json.dumps(_json(outputs, ends, code) | ({"kernel_faults": faults} if faults else {}), indent=1))
    for fault in faults:
        print(f"the lab's kernel reports a fault of its own: {fault}", file=sys.stderr)
    sys.exit(code)


class _Live:
    """Hands over what one program prints, while it runs."""

    def __init__(self, program: Program) -> None:
        self._parts = [(Path(program.stdout), sys.stdout.buffer), (Path(program.stderr), sys.stderr.buffer)]
        self._read = [0, 0]

    def more(self) -> None:
        for number, (file, to) in enumerate(self._parts):
            if file.exists():
                with file.open("rb") as source:
                    source.seek(self._read[number])
                    data = source.read()
                self._read[number] += len(data)
                to.write(data)
                to.flush()


def _print_lines(programs: Sequence[Program]) -> None:
    """The outputs of several programs, one after the other; each line begins with the host's name."""
    for program in programs:
        for file, to in ((program.stdout, sys.stdout.buffer), (program.stderr, sys.stderr.buffer)):
            data = Path(file).read_bytes() if Path(file).exists() else b""
            to.writelines(f"{program.host}: ".encode() + line + b"\n" for line in data.splitlines())
            to.flush()


def _json(programs: Sequence[Program], ends: Sequence[Ended], code: int) -> dict[str, object]:
    return {
        "exit": code,
        "programs": [
            {
                "host": program.host,
                "command": list(program.argv),
                "exit": end.code,
                "stopped": end.stopped,
                "stdout": Path(program.stdout).read_text(encoding="utf-8", errors="replace"),
                "stderr": Path(program.stderr).read_text(encoding="utf-8", errors="replace"),
            }
            for program, end in zip(programs, ends, strict=True)
        ],
    }
