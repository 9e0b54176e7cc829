# SPDX-License-Identifier: Apache-2.0
"""What held before and after a row."""

from __future__ import annotations

import numpy as np
from testctl.rules.core.rows import NEVER
from testctl.rules.core.trace import trace_of

from controller.tests.rules.conversation import records


def test_passes_stay_within_connections() -> None:
    """Each against a walk in Python."""
    rng = np.random.default_rng(1)
    for count in (1, 2, 40, 300):
        conn = np.sort(rng.integers(0, 3, count))
        text = "\n".join(f"{row // 2} a > A win 1 conn {number}" for row, number in enumerate(conn.tolist()))
        trace = trace_of(records(text), "f", 0)
        values, numbers, of = rng.integers(0, 50, count), rng.integers(0, 60, count), rng.random(count) < 0.3
        for row in range(count):
            same = [at for at in range(count) if conn[at] == conn[row]]
            marked = [at for at in same if of[at]]
            before = [at for at in marked if at < row]
            later = [at for at in marked if at > row]
            assert trace.highest(values, of)[row] == max((values[at] for at in before), default=NEVER)
            assert trace.latest(of)[row] == max(before, default=-1)
            assert trace.following(of)[row] == min(later, default=-1)
            assert trace.count(values, of)[row] == sum(values[at] for at in before)
            assert trace.reached(values, of, numbers)[row] == min(
                (at for at in marked if values[at] >= numbers[row]), default=-1
            )
            assert trace.instant[row] == min(at for at in same if at // 2 == row // 2)
            settled = [values[at] for at in same if at // 2 < row // 2 - 3]
            assert trace.settled(values, 3000)[row] == max(settled, default=NEVER)
        few = rng.random(count) < 0.1
        assert (trace.latest(of, few)[few] == trace.latest(of)[few]).all()
