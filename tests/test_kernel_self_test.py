# SPDX-License-Identifier: Apache-2.0
"""A built kernel passes its self-test, and user processes by seccomp change nothing where it has that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.execution.kernel_test import self_test
from testctl.lab.kernel import Kernel
from testctl.lab.self_test import has_seccomp, kept


@pytest.mark.lab
def test_a_built_kernel_passes_its_self_test(kernel: Path, tmp_path: Path) -> None:
    name, _, key = kernel.parent.name.rpartition("-")
    (tmp_path / "linux").symlink_to(kernel)
    found = self_test(Kernel(name, key, tmp_path))
    assert found.ok, found.summary
    assert kept(tmp_path) == found
    assert found.seccomp == has_seccomp(kernel), found.checks


@pytest.mark.lab
def test_timers_are_found_exact_whenever_the_self_test_begins(in_lab: Callable[..., str]) -> None:
    late, before_a_tick = json.loads(in_lab(BEGINNINGS))
    assert len(late) == 1
    assert late != before_a_tick, "a reading until a tick is no longer, so this test shows nothing"


BEGINNINGS = """
import json, os, runpy, time
facts = runpy.run_path(os.environ["TESTCTL_ROOT"] + "/controller/src/testctl/testbeds/kernel_facts.py")
facts["libc"].prctl(facts["PR_SET_TIMERSLACK"], 1, 0, 0, 0)
late = set()
for start_ns in range(996_000, 1_000_000, 100):
    time.sleep((start_ns - time.time_ns() % 1_000_000 + 2_000_000) / 1e9)
    late |= {facts["late_ns"](after_ns) for after_ns in facts["AFTER_TICK_NS"]}
print(json.dumps([sorted(late), [facts["late_ns"](999_900)]]))
"""
