# SPDX-License-Identifier: Apache-2.0
"""What the results of generators and collectors look like, as far as anybody reads them (TaskStatus.result).

A controller believes nothing else: an agent may be another's by now.
"""

from __future__ import annotations

from typing import Any

from testctl_agent.spec.untrusted import Named, Shape, misfit

COUNT = (int, None)
CONNECTION = {
    "bytes_sent?": COUNT,
    "bytes_received?": COUNT,
    "begin_ns?": COUNT,
    "verified?": (bool, None),
    "bad_offset?": COUNT,
    "error?": (str, None),
}
SUM = {"bytes?": int}
END = {
    "role?": str,
    "bytes?": COUNT,
    "verified?": (bool, None),
    "bad_offset?": COUNT,
    "connections?": ([CONNECTION], int),
    "sum_sent?": SUM,
    "sum_received?": SUM,
}
"""Any object of a generator's result: one of tgen's ends, iperf3's sums."""
FLOW = END | {"connections?": [CONNECTION], "error?": (str, None)}

STATE = {"source?": str, "synchronised?": bool, "offset_ns?": COUNT, "error_ns?": COUNT}
FIELD = {"name": str, "offset": int, "bytes": int}
COUNTED = {"records?": int, "lost?": int, "clock_offset_ns?": int}

SHAPES: dict[str, Shape] = {
    "tgen": FLOW,
    "iperf3": FLOW,
    "trex": FLOW,
    "probe": {"passes?": bool, "why?": str, "largest_forward?": int, "largest_backward?": int},
    "clock": {"state?": (STATE, None), "offset_ns?": int, "error_run_ns?": int},
    "capture": {"captured?": int, "received?": int, "dropped?": int},
    "counters": {"errors?": [str]},
    "tcp_info": {"bytes?": int},
    "tcp_events": {"layout?": int, **COUNTED},
    "telemetry": {"layout?": [FIELD], "ports?": Named(str), **COUNTED},
}
PROBED = {"passes": bool, "why": str, "largest_forward": int, "largest_backward": int}
COMPARED = {"offset_ns": int, "error_run_ns": int}
"""What a probe's and a clock's client must say besides."""

PLACE = (str, int, None)
COUNTERS_FILE = {
    "snmp?": Named(float),
    "device?": Named(Named((float, str, bool, None))),
    "qdisc?": [{"device?": PLACE, "kind?": PLACE, "handle?": PLACE, "parent?": PLACE}],
}
"""counters_before.json and counters_after.json."""


def odd(name: str, result: Any) -> str:
    """What is wrong with the result of a generator or collector of that name; "" when nothing is."""
    return misfit(result, SHAPES.get(name, {}))
