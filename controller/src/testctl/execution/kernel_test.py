# SPDX-License-Identifier: Apache-2.0
"""The self-test of a built kernel: faults that its lab reports, and whether a point repeats, also with seccomp."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from testctl.lab import machine
from testctl.lab.kernel import Kernel
from testctl.lab.kernel_lists import CCS, keep
from testctl.lab.self_test import Check, SelfTest, has_seccomp, judged
from testctl.system.process_groups import end
from testctl.system.subprocesses import start
from testctl.system.temporary import temporary
from testctl.testbeds.lab import LabTestbed

PLAN = """
about: what a kernel's self-test repeats
topology: pair
flows: {{bulk: sender -> receiver, other: sender -> receiver}}
tuples:
  - [hosts, kernel, "{name}"]
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 200mbit]
  - [switch:receiver, buffer, 100kB]
  - [switch, delay, 2ms]
  - [bulk, duration, 400ms]
  - [other, duration, 400ms]
"""
BUSY = "while True: pass"


def self_test(kernel: Kernel, say: Callable[[str], None] = lambda _: None) -> SelfTest:
    """Test a kernel and keep the result beside it.

    By seccomp user processes run if the digests are the same with it as without.  Raises TestbedError if a lab fails.
    """
    say("self-test: timers, random numbers, congestion controls")
    facts = machine.self_test_facts(kernel.binary, seccomp=False)
    checks = judged(facts)
    keep(kernel, CCS, facts["ccs"])
    say("self-test: the same point twice")
    digest, faults = _point(kernel, seccomp=False)
    with _load():
        again, _ = _point(kernel, seccomp=False)
        by_seccomp = _point(kernel, seccomp=True)[0] if has_seccomp(kernel.binary) else ""
    checks += [
        Check("the same digest twice, once on a busy machine", digest == again, _shown(digest, again)),
        Check("no warning in its log", not faults, faults[0] if faults else "none"),
    ]
    if by_seccomp:
        same = by_seccomp == digest
        checks.append(Check("by seccomp", True, "the same digest" if same else f"another digest, {by_seccomp[:16]}"))
    test = SelfTest(tuple(checks), seccomp=by_seccomp == digest)
    test.keep(kernel.directory)
    return test


def _point(kernel: Kernel, seccomp: bool) -> tuple[str, list[str]]:
    """The digest of the self-test's point, and the faults that the kernel reported."""
    from testctl.plan import load_plan
    from testctl.records import make_records

    (point,) = load_plan(PLAN.format(name=kernel.name).encode(), metrics={}).points
    testbed = replace(LabTestbed.on({kernel.name: kernel}), seccomp=seccomp)
    with temporary("testctl-self-test-") as where:
        spec, outcome = testbed.run(point, where)
        if outcome.error:
            return outcome.error, outcome.kernel_faults
        return make_records(spec, outcome, where).digest(), outcome.kernel_faults


@contextmanager
def _load() -> Iterator[None]:
    """Keeps all processors busy by one computing process for each."""
    argv, nowhere = [sys.executable, "-c", BUSY], Path(os.devnull)
    busy = [start(argv, log=nowhere, env=os.environ) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in busy:
            end(process)


def _shown(first: str, other: str) -> str:
    return first[:16] if first == other else f"{first[:16]} and {other[:16]}"
