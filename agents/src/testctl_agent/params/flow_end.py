# SPDX-License-Identifier: Apache-2.0
"""When a flow ends: what its options say, and what is assumed of one that ends with its bytes."""

from __future__ import annotations

from collections.abc import Mapping

from testctl_agent.params.flow.pattern import schedule_of
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Duration

OTHERWISE = Duration(10 * 10**9)
"""The duration of a flow that has neither bytes nor a schedule nor a duration."""
LONGEST_ESTIMATE_NS = 60 * 10**9
"""What a flow that ends with its bytes is assumed to take at most."""
_ESTIMATE_BPS = 10**8
_ESTIMATE_EXTRA_NS = 10**9


def ends_by_itself(options: Mapping[str, Value]) -> bool:
    """Whether a flow with these options ends when its bytes or its schedule are done."""
    return bool(options.get("bytes")) or str(options.get("pattern", "")).startswith("schedule")


def duration_ns(options: Mapping[str, Value]) -> int:
    """How long the flow may send; 0: until its bytes, or its schedule, are done."""
    if end := int(options.get("end_ns") or 0):
        return end - int(options.get("start_ns", 0))
    if options.get("duration"):
        return int(options["duration"])
    return 0 if ends_by_itself(options) else int(OTHERWISE)


def end_ns(options: Mapping[str, Value]) -> int:
    """The absolute time at which the sender stops; 0: when all is sent."""
    length_ns = duration_ns(options)
    return int(options.get("start_ns", 0)) + length_ns if length_ns else 0


def estimated_end_ns(options: Mapping[str, Value]) -> int:
    """When a flow should be over, counted from the start of the point's traffic.

    One that ends with its bytes is taken to run at 100 Mb/s, and a second more, but never longer
    than LONGEST_ESTIMATE_NS; one with a schedule likewise, from its last write on.
    """
    written, from_ns = schedule_of(str(options.get("pattern", ""))) or (int(options.get("bytes") or 0), 0)
    count = written * int(options.get("parallel") or 1)
    limits = [length_ns] if (length_ns := duration_ns(options)) else []
    if count:
        limits.append(from_ns + min(count * 8 * 10**9 // _ESTIMATE_BPS + _ESTIMATE_EXTRA_NS, LONGEST_ESTIMATE_NS))
    return int(options.get("start") or 0) + min(limits, default=int(OTHERWISE))
