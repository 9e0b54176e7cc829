# SPDX-License-Identifier: Apache-2.0
"""The user's programs (testctl/lab/programs.py) as the traffic of a lab."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernel_state import waits_pass_time
from testctl.core.point import PointSpec
from testctl.lab.programs import Ended, Program
from testctl.system.subprocesses import Process, start_with, wait
from traffic import ALONE_S, END_S, sleep_until

APART_NS = 10**8
"""From the start of a program of the user to that of the next, which so finds the first one waiting."""
NO_PROGRAM = 127
"""The exit code of a program that can't be started, as in shells."""


def programs(spec: dict[str, Any], point: PointSpec) -> Callable[[], None]:
    """The traffic of the user's programs: one after the other is started, and the end of the last one is waited for.

    The others then get time to end by themselves, SIGTERM, time again, and SIGKILL.
    """
    wanted = [Program.from_json(one) for one in spec["programs"]]
    waits_pass_time()

    def passes() -> None:
        running: list[Process | None] = []
        for number, one in enumerate(wanted):
            sleep_until(spec["t0_ns"] + number * APART_NS)
            running.append(started(one, spec))
        if last := running[-1]:
            last.wait()
        ends = [ended(one, process) for one, process in zip(wanted, running, strict=True)]
        for process in running:
            if process is not None:
                kill(process, signal.SIGKILL)  # what a program left behind
        fresh = Path(spec["ends"])
        fresh.write_text(json.dumps([asdict(one) for one in ends]), encoding="utf-8")

    return passes


def started(program: Program, spec: dict[str, Any]) -> Process | None:
    """A program on its host; None, with a line in its output, when it can't be started.

    What it writes is at once in its file on the machine, so that nothing is lost when the lab is ended.
    """
    outputs = [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC, 0o600)
               for name in (program.stdout, program.stderr)]  # fmt: skip
    try:
        argv = ["ip", "netns", "exec", program.host, *program.argv]
        return start_with(argv, (outputs[0], outputs[1]), spec["environment"], spec["directory"])
    except OSError as error:
        os.write(outputs[1], f"{program.command_line}: can't be started: {error.strerror}\n".encode())
        return None
    finally:
        for output in outputs:
            os.close(output)


def ended(program: Program, process: Process | None) -> Ended:
    """How a program ended; one that goes on is ended."""
    if process is None:
        return Ended(program.host, NO_PROGRAM)
    stopped = not wait(process, ALONE_S)
    if stopped:
        kill(process, signal.SIGTERM)
        if not wait(process, END_S):
            kill(process, signal.SIGKILL)
            process.wait()
    code = process.returncode
    return Ended(program.host, code if code >= 0 else 128 - code, stopped)


def kill(process: Process, number: signal.Signals) -> None:
    """Send a signal to a program and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
