# SPDX-License-Identifier: Apache-2.0
"""packetdrill's scripts in labs, several at once, or in namespaces of the running kernel."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.lab import kernel_log, machine
from testctl.lab.boot_code import BootCode, boot_code
from testctl.lab.packetdrill import Case, CaseEnd, grouped
from testctl.lab.programs import CASE_PATH, NEVER_ENDED, OWN_TMP, environment
from testctl.system import temporary
from testctl.system.subprocesses import ended
from testctl.system.worker_pool import workers
from testctl.testbeds.lab import boot_modules, code_hash

GROUP = 8
"""Scripts that share a lab."""
PARSE_S = 30.0
_UNFIT = re.compile(r"^assertion .* failed at \S+ line [0-9]+$|: error executing init command: ")
"""Lines of packetdrill that say nothing of the kernel: an assertion of packetdrill itself failed, such as on a struct
tcp_info that is longer than the kernel's, or a command before the script's first line failed."""
Shown = Callable[[CaseEnd], None]


@dataclass(frozen=True)
class Order:
    """The cases to run.  kernel: its binary, or None: the running kernel; limit_s: wall time of a case."""

    program: Path
    cases: tuple[Case, ...]
    kernel: Path | None
    limit_s: float = 300.0
    jobs: int = 1


def execute(order: Order, shown: Shown) -> list[CaseEnd]:
    """Run all cases; `shown` is called when one has ended.  In the order of the cases.  Raises TestbedError."""
    ends: dict[Case, CaseEnd] = {}

    def ended_case(end: CaseEnd) -> None:
        ends[end.case] = end
        shown(end)

    runnable = []
    for case in order.cases:
        if why := _unparsed(order.program, case):
            ended_case(CaseEnd(case, "broken", f"packetdrill can't parse it: {why}"))
        else:
            runnable.append(case)
    if order.kernel is None:
        for case in runnable:
            ended_case(_in_namespace(order.program, case, order.limit_s))
    else:
        _in_labs(order, order.kernel, runnable, ended_case)
    return [ends[case] for case in order.cases]


def _unparsed(program: Path, case: Case) -> str:
    """Why packetdrill does not take a script, or ""."""
    argv = [str(program), "--dry_run", *case.argv]
    code, output = ended(argv, cwd=case.script.parent, env=environment(CASE_PATH), timeout_s=PARSE_S)
    return "" if code == 0 else output.strip() or f"exit {code}"


def _in_labs(order: Order, kernel: Path, cases: Sequence[Case], ended_case: Shown) -> None:
    """A fresh lab for each group, `jobs` at once."""
    temporary.remove_temporary()
    code = boot_code(code_hash(), boot_modules())
    groups = grouped(cases, GROUP)
    with workers(min(order.jobs, len(groups))) as pool:
        for future in as_completed([pool.submit(group_ends, order, kernel, group, code) for group in groups]):
            for end in future.result():
                ended_case(end)


def group_ends(order: Order, kernel: Path, group: Sequence[Case], code: BootCode) -> list[CaseEnd]:
    """The ends of cases that share a lab; one that does not end costs the others a fresh one."""
    ends: list[CaseEnd] = []
    left = list(group)
    while left:
        cases = [{"argv": case.argv, "directory": str(case.script.parent), "kept": case.kept} for case in left]
        results, why = machine.run_cases(kernel, order.program, cases, order.limit_s, code)
        tainted = 0
        for case, result in zip(left, results, strict=False):
            faults = kernel_log.faults(result["kernel_log"], result["tainted"] & ~tainted)
            tainted = result["tainted"]
            ends.append(judged(case, result["code"], result["output"], faults, result["virtual_ns"] / 1e9))
        left = left[len(results) :]
        if left:
            ends.append(CaseEnd(left.pop(0), "broken", why))
    return ends


def judged(case: Case, code: int, output: str, faults: Sequence[str], seconds: float) -> CaseEnd:
    """The verdict of a case that ended: packetdrill's, and a fault that the kernel reported is a failure.

    Its text begins with the line that says why: lines before it come from programs that the script starts.
    """
    if code == NEVER_ENDED:
        return CaseEnd(case, "broken", f"did not end within {seconds:.0f} s of virtual time", seconds)
    lines = output.strip().splitlines() if code else []
    unfit = next((number for number, line in enumerate(lines) if _UNFIT.search(line)), None)
    own = (number for number, line in enumerate(lines) if line.startswith(f"{case.script.name}:"))
    first = next(own, 0) if unfit is None else unfit
    own_text = "\n".join([*lines[first:], *lines[:first]]) or (f"exit {code}" if code else "")
    text = "\n".join([*([own_text] if own_text else []), *(f"kernel: {fault}" for fault in faults)])
    verdict = "fail" if faults or (text and unfit is None) else "broken" if text else "pass"
    return CaseEnd(case, verdict, text, seconds)


def _in_namespace(program: Path, case: Case, limit_s: float) -> CaseEnd:
    """A case in a network namespace of the running kernel, with a /tmp of its own and the machine's files read-only.

    Raises TestbedError.
    """
    if os.geteuid() != 0:
        raise TestbedError("scripts in a namespace of the running kernel need root; without --testbed netns they don't")
    began = time.monotonic()
    with temporary.temporary("testctl-packetdrill-") as home:
        copy = shutil.copy(program, home / "packetdrill")
        inside = ["unshare", "--net", "--mount", "sh", "-c",
                  f'exec 9<"$1"; shift; mount -o remount,bind,ro / || exit\n{OWN_TMP}'
                  'cp /proc/self/fd/9 /tmp/.packetdrill && chmod 700 /tmp/.packetdrill && exec /tmp/.packetdrill "$@"',
                  "sh", str(copy), case.kept, str(case.script.parent), *case.argv]  # fmt: skip
        env = environment(CASE_PATH) | {"HOME": "/tmp", "TMPDIR": "/tmp"}
        code, output = ended(inside, cwd=case.script.parent, env=env, timeout_s=limit_s)
    took_s = time.monotonic() - began
    if code is None:
        return CaseEnd(case, "broken", f"did not end within {limit_s:g} s", took_s)
    return judged(case, code, output, [], took_s)
