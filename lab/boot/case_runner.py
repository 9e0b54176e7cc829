# SPDX-License-Identifier: Apache-2.0
"""Mode "cases" of the first process: programs that are run one after the other, each in a network namespace of its own.

The orders name them, {"cases": [{"argv", "directory", "kept"}, …], "program", "results", "outputs"}: `program` is a
file of the machine that is copied to PROGRAM, so that a case finds it although /tmp is empty for it, but for the
directory `kept`.  What a case prints goes to outputs/NUMBER; when it has ended, a line of JSON is added to `results`:
{"code", "virtual_ns", "kernel_log", "tainted"}.  Every case begins with the same random
numbers, at the beginning of a virtual second.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernel_state import TAINTED, new_messages, seed, waits_pass_time
from testctl.lab.programs import CASE_PATH, NEVER_ENDED, OWN_TMP, environment
from testctl.system.subprocesses import start_with

PROGRAM = Path("/run/testctl/program")
MOST_S = 3600
"""Virtual seconds that a case may take."""
INSIDE = f'{OWN_TMP}exec "$@"'


def run_cases(spec: Mapping[str, Any]) -> None:
    """Run all cases."""
    waits_pass_time()
    shutil.copy(spec["program"], PROGRAM)
    results = os.open(spec["results"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC, 0o600)
    new_messages()
    for number, case in enumerate(spec["cases"]):
        output = os.open(f"{spec['outputs']}/{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC, 0o600)
        now_ns = time.time_ns()
        time.sleep((10**9 - now_ns % 10**9) / 1e9)
        seed(spec["seed"])
        began_ns = time.time_ns()
        code = run_case([str(PROGRAM), *case["argv"]], output, case["directory"], case["kept"])
        os.close(output)
        took_ns = time.time_ns() - began_ns
        found = {
            "code": code,
            "virtual_ns": took_ns,
            "kernel_log": new_messages().decode(errors="replace"),
            "tainted": int(TAINTED.read_text(encoding="ascii")),
        }
        os.write(results, json.dumps(found).encode() + b"\n")


def run_case(argv: list[str], output: int, directory: str, kept: str) -> int:
    """One case; its exit code, negative after a signal, or NEVER_ENDED."""
    inside = ["unshare", "--net", "--mount", "sh", "-c", INSIDE, "sh", kept, directory, *argv]
    process = start_with(inside, (output, output), environment(CASE_PATH), directory)
    end = select.poll()
    fd = os.pidfd_open(process.pid)
    end.register(fd, select.POLLIN)
    ended = bool(end.poll(MOST_S * 1000))
    os.close(fd)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    return code if ended else NEVER_ENDED
