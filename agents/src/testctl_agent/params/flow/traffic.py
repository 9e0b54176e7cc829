# SPDX-License-Identifier: Apache-2.0
"""What a flow's application sends, how much of it, and when it begins and ends (see pattern.py)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from testctl_agent.params.flow.pattern import schedule_of
from testctl_agent.params.flow.workload import last_ns
from testctl_agent.params.words import GeneratorWord
from testctl_agent.spec import workload
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Int, Switch, Value
from testctl_agent.spec.units import Bytes, Duration, Rate

OTHERWISE = Duration(10 * 10**9)
"""The duration of a flow that has neither bytes nor a schedule nor a duration."""
LONGEST_ESTIMATE_NS = 60 * 10**9
"""What a flow that ends with its bytes is assumed to take at most."""
_ESTIMATE_BPS = 10**8
_ESTIMATE_EXTRA_NS = 10**9
MAX_TOGETHER = 2**30
"""Bytes that all connections of a flow write from together: each has its own buffer, in memory from the start."""
_GENERATORS = {path.stem for path in (Path(__file__).parents[2] / "generators").glob("[!_]*.py")}
_NO_FLOW = {"probe"}
"""What tries a path and carries no flow."""


def ends_by_itself(options: Mapping[str, Value]) -> bool:
    """Whether a flow with these options ends when its bytes, its schedule or its requests are done."""
    written = options.get("bytes") or str(options.get("pattern", "")).startswith("schedule")
    return bool(written) or workload.asks(options)


def duration_ns(options: Mapping[str, Value]) -> int:
    """How long the flow may send; 0: until its bytes, its schedule or its requests are done."""
    if end := int(options.get("end_ns") or 0):
        return end - int(options.get("start_ns", 0))
    if options.get("duration"):
        return int(options["duration"])
    return 0 if ends_by_itself(options) else int(OTHERWISE)


def end_ns(options: Mapping[str, Value]) -> int:
    """The absolute time at which the sender stops; 0: when all is sent."""
    length_ns = duration_ns(options)
    return int(options.get("start_ns", 0)) + length_ns if length_ns else 0


def stop_ns(options: Mapping[str, Value]) -> int:
    """When the sender stops, counted from the start of the point's traffic; 0: when all is sent."""
    length_ns = duration_ns(options)
    return int(options.get("start") or 0) + length_ns if length_ns else 0


def estimated_end_ns(options: Mapping[str, Value]) -> int:
    """When a flow should be over, counted from the start of the point's traffic.

    One that ends with its bytes is taken to run at 100 Mb/s, and a second more, but never longer
    than LONGEST_ESTIMATE_NS; one with a schedule likewise, from its last write on; requests end a second after the
    last one came.
    """
    if workload.asks(options):
        return int(options.get("start") or 0) + last_ns(options) + _ESTIMATE_EXTRA_NS
    written, from_ns = schedule_of(str(options.get("pattern", ""))) or (int(options.get("bytes") or 0), 0)
    count = written * int(options.get("parallel") or 1)
    limits = [length_ns] if (length_ns := duration_ns(options)) else []
    if count:
        limits.append(from_ns + min(count * 8 * 10**9 // _ESTIMATE_BPS + _ESTIMATE_EXTRA_NS, LONGEST_ESTIMATE_NS))
    return int(options.get("start") or 0) + min(limits, default=int(OTHERWISE))


_spec = partial(ParamSpec, kind="flow", role="flow")

SPECS = [
    _spec(name="blocking", help="on: blocking calls; off: non-blocking ones and epoll", type=Switch(), default=True),
    _spec(
        name="burst",
        help="Bytes that an application with a rate writes at a time; otherwise 1 ms of the rate, at least 1448",
        type=Amount(Bytes, least=1, most=10**12),
    ),
    _spec(
        name="bytes",
        help="Bytes that each connection sends; with a duration, whichever ends first",
        type=Amount(Bytes, least=1, most=10**18),
    ),
    _spec(
        name="duration",
        help=f"How long the flow sends; {OTHERWISE} when neither bytes nor a schedule end it",
        type=Amount(Duration, least=1000, most=10**15),
    ),
    _spec(
        name="generator",
        help="The program that makes the traffic: a file of generators/, or of another distribution",
        type=GeneratorWord(tuple(sorted(_GENERATORS - _NO_FLOW))),
        default="tgen",
        example="iperf3",
    ),
    _spec(
        name="parallel",
        help="Connections of the flow, each with its own client port",
        type=Int(1, 64),
        default=1,
    ),
    _spec(
        name="rate",
        help="Rate at which each connection's application writes; none: as fast as TCP takes it",
        type=Amount(Rate, least=1, most=10**13, none="none"),
        default="none",
    ),
    _spec(
        name="reverse",
        help="on: data goes from `to` to `from`: the client connects, the server sends",
        type=Switch(),
        default=False,
    ),
    _spec(
        name="start",
        help="When the flow connects, counted from the start of the point's traffic",
        type=Amount(Duration, most=10**15),
        default=Duration(0),
    ),
    _spec(name="verify", help="on: the receiver checks every byte that arrives", type=Switch(), default=False),
    _spec(
        name="write_size",
        help="Bytes of one write of the application, at most, also of a request's; of all connections of a flow "
        "together at most 1 GiB",
        type=Amount(Bytes, least=1, most=10**9),
        default=Bytes(2**20),
    ),
]
