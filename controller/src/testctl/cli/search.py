# SPDX-License-Identifier: Apache-2.0
"""Finds names by a word of the user: the whole name, a part of it, or one that is spelt almost like it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from testctl_agent.spec.errors import PlanError

from testctl.plan.diagnostics import show

CUTOFF = 0.6
MOST = 5
"""Names that an error suggests."""


SYNONYMS = {
    "fairness": "jain", "share": "jain", "bandwidth": "throughput rate", "speed": "throughput rate",
    "utilization": "saturation", "utilisation": "saturation", "efficiency": "saturation", "link": "saturation capacity",
    "bufferbloat": "latency own_queue", "delay": "latency rtt", "latency": "delay jitter", "bdp": "buffer rate delay",
    "loss": "fate", "drop": "drops fate", "queue": "own_queue buffer aqm", "ecn": "ecn ce_ ece_", "window": "cwnd",
    "rto": "timeout", "jitter": "jitter stability", "flow completion time": "fct", "latencies": "latency",
    "algorithm": "cc", "duplicate": "fate", "reordering": "fate",
    "mark": "ecn_threshold",
}  # fmt: skip
"""What users call it -> parts of the names that testctl has for it, of parameters and metrics."""


def find(word: str, texts: Mapping[str, str], what: str) -> list[str]:
    """The names that a word means: the name itself, else all with it or a synonym of it in the name, else in the text.

    texts  name -> what it is
    what   for the error, such as "metric"

    Raises PlanError with the names that are spelt almost like it.
    """
    low = word.strip().lower()
    if low in texts:
        return [low]
    parts = [low, *SYNONYMS.get(low, "").split()]
    matches = [name for part in parts for name in texts if part in name]
    matches = matches or [name for name, text in texts.items() if low in text.lower()]
    if low and matches:
        return sorted(dict.fromkeys(matches), key=lambda name: name.startswith("kernel_"))
    raise PlanError(f"no {what} {show(word)}{near(low, texts)}")


def near(word: str, known: Collection[str]) -> str:
    """ "; did you mean A or B?", or the names there are when they are few, or nothing."""
    matches = difflib.get_close_matches(word[:60], sorted(known), n=MOST, cutoff=CUTOFF)
    if matches:
        return f"; did you mean {' or '.join(matches)}?"
    return f"; there are {', '.join(known)}" if len(known) <= 2 * MOST else ""
