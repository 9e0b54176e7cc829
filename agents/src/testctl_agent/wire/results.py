# SPDX-License-Identifier: Apache-2.0
"""What the results of generators and collectors look like, as far as anybody reads them (TaskStatus.result).

A controller believes nothing else: an agent may be another's by now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testctl_agent.spec.untrusted import Named, Shape, misfit

COUNT = (int, None)
FAILURE = {"failure?": (str, None), "failed_ns?": COUNT}
CONNECTION = {
    **FAILURE,
    "bytes_sent?": COUNT,
    "bytes_received?": COUNT,
    "begin_ns?": COUNT,
    "verified?": (bool, None),
    "bad_offset?": COUNT,
    "error?": (str, None),
}
FLOW = {
    **FAILURE,
    "role?": str,
    "bytes?": COUNT,
    "verified?": (bool, None),
    "bad_offset?": COUNT,
    "connections?": [CONNECTION],
    "error?": (str, None),
}
"""One end of a flow; a generator may say more."""

STATE = {"source?": str, "synchronised?": bool, "offset_ns?": COUNT, "error_ns?": COUNT}
FIELD = {"name": str, "offset": int, "bytes": int}
COUNTED = {"records?": int, "lost?": int, "clock_offset_ns?": int}

SHAPES: dict[str, Shape] = {
    "tgen": FLOW,
    "iperf3": FLOW,
    "command": FLOW,
    "probe": {"passes?": bool, "why?": str, "largest_forward?": int, "largest_backward?": int},
    "clock": {"state?": (STATE, None), "offset_ns?": int, "error_run_ns?": int},
    "capture": {"captured?": int, "received?": int, "dropped?": int},
    "counters": {"errors?": [str]},
    "tcp_info": {"bytes?": int},
    "tcp_events": {"layout?": int, **COUNTED},
    "link_origin": {"origin_ns?": int},
    "p4_state": {"cells?": int},
    "port_queue": {"ports?": Named(int), "dropped?": int},
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
P4_STATE_FILE = {"registers": Named(Named(int)), "counters": Named(Named([int]))}
"""p4_state.json: by name and cell a register's value, a counter's packets and bytes."""


@dataclass(frozen=True)
class Connection:
    """A connection as one end saw it; None: not known.

    begin_ns    when it was begun, by the host's clock
    verified    whether what was read is what was sent; bad_offset: the first byte that is not
    failure     how it failed (spec/failures.py); failed_ns: when the application noticed, by the host's clock
    """

    bytes_sent: int | None = None
    bytes_received: int | None = None
    begin_ns: int | None = None
    verified: bool | None = None
    bad_offset: int | None = None
    error: str | None = None
    failure: str | None = None
    failed_ns: int | None = None


@dataclass(frozen=True)
class FlowEnd:
    """What one end of a flow returns, of whichever generator.

    role   "sender" or "receiver"; "" where it is not known
    bytes  what its application wrote, or read; None where it is not known
    failure, failed_ns   as of a connection, where the generator has them of all connections together
    raw    all of it, as the generator returned it
    """

    role: str = ""
    bytes: int | None = None
    connections: tuple[Connection, ...] = ()
    verified: bool | None = None
    bad_offset: int | None = None
    error: str | None = None
    failure: str | None = None
    failed_ns: int | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls, raw: Any) -> FlowEnd:
        """Raises ValueError: want …; got …"""
        if why := misfit(raw, FLOW):
            raise ValueError(why)
        names = ("role", "bytes", "verified", "bad_offset", "error", "failure", "failed_ns")
        own = {name: raw[name] for name in names if name in raw}
        known = Connection.__dataclass_fields__
        ends = tuple(
            Connection(**{name: end[name] for name in known if name in end}) for end in raw.get("connections", ())
        )
        return cls(**own, connections=ends, raw=raw)

    @property
    def failures(self) -> list[FlowEnd | Connection]:
        """The connections that failed, or this where all are reported together."""
        reports: list[FlowEnd | Connection] = [self, *self.connections]
        return [report for report in reports if report.failure]


def odd(name: str, result: Any) -> str:
    """Why the result of a generator or collector of that name is invalid; "" if it is valid.

    A name that is not in SHAPES is of another distribution's generator.
    """
    return misfit(result, SHAPES.get(name, FLOW))
