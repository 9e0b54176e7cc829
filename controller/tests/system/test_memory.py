# SPDX-License-Identifier: Apache-2.0
"""Arrays are made of freed memory where that is asked for, and it goes back afterwards."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, resource
from pathlib import Path

import numpy as np
from testctl.system.memory import freed_is_kept


def some() -> int:
    "Pages that the system finds for ten times five arrays of 20 MB."
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        arrays = [np.ones(20_000_000, np.uint8) for _ in range(5)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


outside, first = some(), resident()
with freed_is_kept():
    inside, kept = some(), resident()
print(json.dumps([outside, inside, kept - first, resident() - first]))
"""
PAGES = 5 * 20_000_000 // 4096


def test_freed_memory_is_used_again_and_goes_back() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    outside, inside, kept, after = json.loads(done.stdout)
    assert outside > 5 * PAGES
    assert inside < 2 * PAGES
    assert kept > PAGES // 2
    assert after < PAGES // 4
