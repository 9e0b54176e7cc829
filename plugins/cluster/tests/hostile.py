# SPDX-License-Identifier: Apache-2.0
"""Loaded into a Dask worker (--preload), it answers as TESTCTL_HOSTILE says.

Every process that unpickles what it answers leaves a file of its number.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from testctl_cluster import worker

HOW = os.environ["TESTCTL_HOSTILE"]
MARK = Path(os.environ["TESTCTL_MARK"])


class Evil(Exception):
    def __reduce__(self) -> Any:
        return exec, (f"import os; open({str(MARK)!r} + '/' + str(os.getpid()), 'w').close()",)


def answer(*_: Any) -> Any:
    if HOW.endswith("raises"):
        raise Evil
    if HOW.endswith("exits"):
        raise SystemExit(0)
    return Evil()


def other_point(bed: Any, point: Any, *words: Any) -> bytes:
    """What it ran is not what it was asked for."""
    from dataclasses import replace

    return real(bed, replace(point, id="cafecafecafe"), *words)


real = worker.work
if HOW.startswith("fitness"):
    worker.fitness_bytes = answer
elif HOW == "other point":
    worker.work = other_point  # type: ignore[assignment]
else:
    worker.work = answer
