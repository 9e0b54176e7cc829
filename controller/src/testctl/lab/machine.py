# SPDX-License-Identifier: Apache-2.0
"""One lab: a User-Mode-Linux process in virtual time that runs one point and ends."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import tgen_program

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.lab import boot_parameters, kernel_log, memory
from testctl.lab.boot_code import BootCode, as_files
from testctl.lab.cpu_pinning import own_processor
from testctl.lab.programs import Ended, Program, environment, search_path
from testctl.system import checkout, temporary
from testctl.system.process_groups import end, starting
from testctl.system.subprocesses import Process, interact, start, wait

BOOT_NS = 1_700_000_000 * 10**9
"""The virtual time at which every lab boots."""

T0_NS = BOOT_NS + 20 * 10**9 + 333_333
"""The virtual time at which every point's traffic starts.  The setup takes less, and waiting
costs no wall time.  It is between two ticks of the kernel: exactly at a tick, a timer could
fire a nanosecond earlier or later, depending on the setup."""

CLIENT_S, AGENT_S, PROMPT_S = 0.2, 0.1, 15.0
"""Virtual setup time of each flow and of each agent; up to PROMPT_S in total, T0_NS is late enough."""

SPEC, OUTCOME, CONSOLE = "lab.json", "outcome.json", "console.log"
"""Files in a lab's directory: what its first process is to do, its result, and what its kernel and first process
print."""

STEPS = ("interpreter", "imports", "network", "agents", "described", "applied", "collectors", "generators", "traffic")
"""The files that init.py makes when a step of the start has ended, in order; their times are wall-clock times.
"interpreter" is the end of the kernel's boot and of Python's own start, "traffic" the end of the sleep until then."""

OUT_OF_MEMORY = "compulsory panic_on_oom is enabled"
"""The kernel's panic message when a lab's memory is full (init.py sets panic_on_oom)."""
LAB_FILES = "/run/testctl/raw"
"""The directory of a shell's agents, in the lab's memory."""

LAST_LINES = 25
"""Of a console that an error shows."""
SELF_TEST_S = 300.0
CASE_SEED = 1
"""Of the random numbers of each program of run_cases()."""
LOOK_S = 0.1
"""How often the output of a lab's programs is read."""

KERNEL_LOG, TRACE = "kernel.log", "kernel.trace"
"""Files of a kernel's messages, in the lab's own directory with its taints, and of its tracepoints."""

LOG_BUFFER = "1M"
"""Of the lab's kernel: its messages must last until the point's end."""


def run_point(
    point: PointSpec,
    kernel: Path,
    workdir: Path,
    wall_limit_s: float,
    program: Path | None = None,
    code: BootCode | None = None,
    seccomp: bool | None = None,
    parameters: Sequence[str] = (),
) -> Outcome:
    """Boot a lab, run a point in it, and return the outcome (see core/outcome.py).

    program: the compiled program that the switches load, if any; code: how the first process is started; seccomp:
    whether user processes run by seccomp, None: if the kernel's self-test allows it; parameters: further words of the
    kernel's command line.  Raw files are written below `workdir`.  Raises TestbedError with the lab's last output when
    it crashes, gives no result or runs for longer than wall_limit_s.
    """
    with temporary.temporary(temporary.LABS) as home, own_processor() as cpu:
        spec = orders_of(home, point, workdir.resolve(), "point", [home, workdir.resolve()])
        process = boot(home, kernel, spec, memory.lab_mb(point), program, cpu, code, seccomp, parameters)
        _end(process, home, wall_limit_s)
        return outcome_in(home, point, process)


def run_programs(
    point: PointSpec,
    kernel: Path,
    workdir: Path,
    programs: Sequence[Program],
    wall_limit_s: float,
    program: Path | None = None,
    writable: Path | None = None,
    printed: Callable[[], None] = lambda: None,
    family: str = "4",
) -> tuple[list[Ended], Outcome]:
    """Boot a lab, run programs in it, and return how each ended and the outcome of the point around them.

    writable: a directory of the machine that the programs may write to; printed: called while they run and at the
    end; family: whose addresses the names of hosts stand for (programs.FAMILIES).  Captures are written below
    `workdir`, where the programs' outputs lie too.  Raises TestbedError as run_point does.
    """
    with temporary.temporary(temporary.LABS) as home, own_processor() as cpu:
        may = [home, workdir.resolve(), *([writable.resolve()] if writable else [])]
        more = {
            "programs": [user_program.to_json() for user_program in programs],
            "environment": environment(search_path()),
            "directory": os.getcwd(),
            "ends": str(home / "ends.json"),
            "family": family,
        }
        spec = orders_of(home, point, workdir.resolve(), "programs", may, more)
        process = boot(home, kernel, spec, memory.lab_mb(point), program, cpu)
        until = time.monotonic() + wall_limit_s
        try:
            while not (ended := wait(process, LOOK_S)) and time.monotonic() < until:
                printed()
        finally:
            end(process)
            printed()
        if not ended:
            last = programs[-1]
            raise TestbedError(
                f"{last.host}: {last.command_line}: did not end within {wall_limit_s:g} s of wall time"
                " (--timeout gives it more)"
            )
        outcome = outcome_in(home, point, process)
        if not (home / "ends.json").is_file():
            raise TestbedError(
                f"the lab ran no program: {outcome.error or outcome.skip or _last_output(home / CONSOLE)}"
            )
        ends = json.loads((home / "ends.json").read_text(encoding="utf-8"))
        return [Ended(**end) for end in ends], outcome


def self_test_facts(kernel: Path, seccomp: bool | None = None) -> dict[str, Any]:
    """The facts that testbeds/kernel_facts.py reads in a lab of this kernel.  Raises TestbedError if there are none."""
    with temporary.temporary(temporary.LABS) as home, own_processor() as cpu:
        outcome = home / OUTCOME
        spec = _write_spec(home, {"mode": "self-test", "outcome": str(outcome), "writable": [str(home)]})
        process = boot(home, kernel, spec, memory.MIN_MB, None, cpu, seccomp=seccomp)
        _end(process, home, SELF_TEST_S)
        if not outcome.is_file():
            why = f"the lab's self-test ended without a result (exit {process.returncode})"
            raise TestbedError(why + _last_output(home / CONSOLE))
        facts: dict[str, Any] = json.loads(outcome.read_text(encoding="utf-8"))
        return facts


def run_cases(
    kernel: Path, program: Path, cases: Sequence[Mapping[str, Any]], limit_s: float, code: BootCode | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Boot a lab and run programs in it one after the other, as lab/boot/case_runner.py says.

    Returns the lines of its results with each one's "output", and why the lab ended before the last one, or "".

    limit_s: wall time that one may take
    """
    with temporary.temporary(temporary.LABS) as home, own_processor() as cpu:
        results, outputs = home / "results", home / "outputs"
        outputs.mkdir()
        spec = _write_spec(home, {
            "mode": "cases", "cases": list(cases), "program": str(program), "results": str(results),
            "outputs": str(outputs), "seed": CASE_SEED, "writable": [str(home)],
        })  # fmt: skip
        process = boot(home, kernel, spec, memory.MIN_MB, None, cpu, code)
        done, until = -1, 0.0
        try:
            while not (ended := wait(process, LOOK_S)) and (done < 0 or time.monotonic() < until):
                now = results.read_bytes().count(b"\n") if results.exists() else 0
                if now > done:
                    done, until = now, time.monotonic() + limit_s
        finally:
            end(process)
        text = results.read_text(encoding="utf-8") if results.exists() else ""
        ends: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]
        for number, end_of_case in enumerate(ends):
            end_of_case["output"] = _text(outputs / str(number))
        why = "" if len(ends) == len(cases) else f"did not end within {limit_s:g} s of wall time"
        if why and ended:
            why = f"the lab ended (exit {process.returncode}){_last_output(home / CONSOLE)}"
        return ends, why


def _end(process: Process, home: Path, wall_limit_s: float) -> None:
    """Wait for a lab's end.  Raises TestbedError if it takes too long."""
    try:
        ended = wait(process, wall_limit_s)
    finally:
        end(process)
    if not ended:
        why = f"the lab ran for more than {wall_limit_s:g} s of wall time and was ended"
        raise TestbedError(why + _last_output(home / CONSOLE))


def boot(
    home: Path,
    kernel: Path,
    spec: Path,
    memory_mb: int,
    program: Path | None,
    cpu: int | None,
    code: BootCode | None = None,
    seccomp: bool | None = None,
    parameters: Sequence[str] = (),
) -> Process:
    """A lab's kernel, in a session of its own."""
    more = [*boot_parameters.parameters(kernel, seccomp), *parameters, f"TESTCTL_STEPS={home}"]
    argv = command_line(home, kernel, spec, memory_mb, program, cpu, code, more)
    with starting() as sessions:
        process = start(argv, log=home / CONSOLE, env=lab_environment(home, memory_mb))
        sessions.add(process.pid)
    return process


def outcome_in(home: Path, point: PointSpec, process: Process) -> Outcome:
    """What a lab that has ended left.  Raises TestbedError when it left nothing."""
    outcome, log = home / OUTCOME, home / CONSOLE
    if not outcome.is_file() and OUT_OF_MEMORY in _text(log):
        raise TestbedError(
            f"the lab's memory was full: {memory.contents(point)} need about {memory.needed_mb(point)} MB; "
            f"it had {memory.lab_mb(point)} MB (set {memory.SET} to give it more)"
        )
    if not outcome.is_file():
        raise TestbedError(f"the lab ended without a result (exit {process.returncode}){_last_output(log)}")
    return outcome_of(home)


def outcome_of(home: Path) -> Outcome:
    """The outcome that a lab wrote, with what its kernel reported."""
    result = Outcome.from_json(json.loads((home / OUTCOME).read_text(encoding="utf-8")))
    marks = {"started": SPEC, **{name: name for name in STEPS}, "ended": OUTCOME}
    wall = {what: (home / name).stat().st_mtime for what, name in marks.items() if (home / name).exists()}
    return replace(result, wall=wall, kernel_faults=kernel_log.read(home / KERNEL_LOG))


def t0_ns(point: PointSpec) -> int:
    """T0_NS, or whole seconds later if the setup of many hosts and flows takes longer."""
    needs_s = CLIENT_S * len(point.flows) + AGENT_S * len(point.topology.entities)
    return T0_NS + math.ceil(max(0.0, needs_s - PROMPT_S)) * 10**9


def shell(
    point: PointSpec, kernel: Path, program: Path | None = None, writable: Path | None = None, family: str = "4"
) -> int:
    """A shell at the user's terminal, inside a lab with the point's topology.

    writable: the only directory of the machine that is writable in the shell; family: as of run_programs
    """
    with temporary.temporary(temporary.LABS) as home:
        may = [writable.resolve()] if writable else []
        spec = orders_of(home, point, Path(LAB_FILES), "shell", may, {"family": family})
        memory_mb = memory.lab_mb(point)
        argv = command_line(home, kernel, spec, memory_mb, program, more=boot_parameters.parameters(kernel))
        return interact(argv, env=lab_environment(home, memory_mb))


def orders_of(
    home: Path,
    point: PointSpec,
    workdir: Path,
    mode: str,
    writable: Sequence[Path],
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    """Write the file that tells the lab's first process what to do; more: what a mode wants besides."""
    return _write_spec(home, {
        "mode": mode,
        "workdir": str(workdir),
        "outcome": str(home / OUTCOME),
        "t0_ns": t0_ns(point),
        "seed": point.seed,
        "kernel_log": str(home / KERNEL_LOG),
        "writable": [str(path) for path in writable],
        "point": point.to_json(),
        **more,
    })  # fmt: skip


def _write_spec(home: Path, spec: Mapping[str, Any]) -> Path:
    path = home / SPEC
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


def lab_environment(home: Path, memory_mb: int) -> dict[str, str]:
    """The environment.  The lab's memory is a file in TMPDIR, deleted once it is open; in /dev/shm if it fits."""
    fast = Path("/dev/shm")
    roomy = os.access(fast, os.W_OK | os.X_OK) and shutil.disk_usage(fast).free > 2 * memory_mb << 20
    return {
        "TMPDIR": str(fast if roomy else home),
        "HOME": str(home),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "TERM": os.environ.get("TERM", "dumb"),
    }


def command_line(
    home: Path,
    kernel: Path,
    spec: Path,
    memory_mb: int,
    program: Path | None,
    cpu: int | None = None,
    code: BootCode | None = None,
    more: Sequence[str] = (),
) -> list[str]:
    """The kernel and its command line.  It dies with the process that starts it, and stays on its processor, if any.

    Its root is the machine's file system, read-only; init.py mounts writable directories again.
    """
    code = code or as_files()
    init, *arguments = _init(home, code)
    return [
        "setpriv", "--pdeathsig", "KILL",
        *([] if cpu is None else ["taskset", "--cpu-list", str(cpu)]),
        str(kernel),
        f"mem={memory_mb}M",
        "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={init}",
        "con0=fd:0,fd:1", "con=null", "quiet", "panic=-1", f"log_buf_len={LOG_BUFFER}",
        f"uml_dir={home}", "umid=lab",
        "time-travel=inf-cpu", f"time-travel-start={BOOT_NS}",
        "testctl_random.seed=1",
        f"TESTCTL_LAB={spec}", f"TESTCTL_ROOT={checkout.root()}", "PYTHONHASHSEED=0",
        f"{tgen_program.GIVEN}={tgen_program.ready()}",
        *([f"TESTCTL_PROGRAM={program}"] if program else []),
        *(f"{name}={value}" for name, value in code.environment.items()),
        *more,
        *(["--", *arguments] if arguments else []),
    ]  # fmt: skip


def _init(home: Path, code: BootCode) -> list[str]:
    """The argv of the first process; where the kernel would split one of its arguments, a script that starts it."""
    if not any(char.isspace() or char == '"' for char in "".join(code.argv)):
        return list(code.argv)
    init = home / "init"
    init.write_text(f"#!/bin/sh\nexec {shlex.join(code.argv)}\n", encoding="utf-8")
    init.chmod(0o755)
    return [str(init)]


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _last_output(log: Path) -> str:
    lines = _text(log).strip().splitlines()
    if not lines:
        return "; it printed nothing"
    reports = kernel_log.faults("\n".join(lines))
    if reports:
        return "; its kernel reports:\n  " + "\n  ".join(reports[0].splitlines()[:LAST_LINES])
    return "; its last output:\n  " + "\n  ".join(lines[-LAST_LINES:])
