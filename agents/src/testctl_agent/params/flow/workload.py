# SPDX-License-Identifier: Apache-2.0
"""Requests that come by themselves: when, how many and how large (see spec/workload.py).

A flow with `requests` opens a connection for each of them, at random times and whether or not those before are over;
or they take turns on `connections`, each some time to `think` after the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testctl_agent.spec import workload
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Int, Switch, Text, Value
from testctl_agent.spec.units import Bytes, Duration

GENERATOR = "tgen"
"""The only generator that makes requests."""
SETS = (
    "arrival_rate", "connections", "deadline", "draw", "every", "fanout", "load", "overload", "request_size",
    "requests", "sizes", "think",
)  # fmt: skip
HONOURED = frozenset(
    {
        *SETS, "generator", "reverse", "start", "family", "cc", "nodelay", "send_buffer", "receive_buffer",
        "notsent_lowat", "keepalive", "keepalive_probes", "user_timeout", "write_size",
    }
)  # fmt: skip
"""The parameters of a flow that makes requests; the others are about one stream of data."""
LONGEST_NS = 120 * 10**9
"""How long after the last one came requests may take."""


def last_ns(options: Mapping[str, Value]) -> int:
    """About when the last request comes, after the flow's start: when it would if they came evenly; 0 where the rate
    is not known."""
    if workload.thinks(options):
        return -(-workload.count(options) // workload.connections(options)) * int(options["think"])
    rate = float(options.get("arrival_rate") or 0)
    return int(int(options["requests"]) / rate * 1e9) if rate else 0


@dataclass(frozen=True)
class Number:
    """A number above 0, at most `most`; percent: 60% is 0.6."""

    most: float
    example: str
    percent: bool = False

    @property
    def want(self) -> str:
        return f"a number above 0, at most {self.most:g}, such as {self.example}"

    def parse(self, raw: object) -> Value:
        text = str(raw)
        match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(%?)", text)
        if isinstance(raw, bool) or match is None or (match[2] and not self.percent):
            raise ValueError(f"want {self.want}; got {raw!r}")
        value = float(match[1]) / (100 if match[2] else 1)
        if not 0 < value <= self.most:
            raise ValueError(f"want {self.want}; got {raw!r}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["number", "string"], "description": self.want}


@dataclass(frozen=True)
class Sizes:
    """A distribution of sizes; its value is the whole distribution as text, whatever it was named by."""

    @property
    def want(self) -> str:
        return (
            f"{', '.join(workload.names())}, a size such as 20kB, a file beside the plan such as ./sizes.cdf, or "
            "'1kB:0.5 1MB:1'"
        )

    def parse(self, raw: object) -> Value:
        text = "" if isinstance(raw, bool) else str(raw).strip()
        try:
            return str(workload.of_text(text))
        except ValueError as error:
            why = f" ({error})" if ":" in text else ""
            raise ValueError(f"want {self.want}; got {raw!r}{why}") from error

    def file(self, data: bytes, place: Path | None = None) -> str:
        """The distribution of a file, wherever it lies.  Raises ValueError with the line."""
        return str(workload.read(data))

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "integer"], "description": self.want}


_spec = partial(ParamSpec, kind="flow", role="flow")
_COUNT, _SIZE, _PACE = "[flows, requests, 100]", "[flows, sizes, 20kB]", "[flows, arrival_rate, 2000]"
_ANSWERED = "[flows, reverse, on]"

SPECS = [
    _spec(
        name="arrival_rate",
        beside=(_COUNT, _SIZE),
        help="Requests a second, on average: they come as a Poisson process, whether or not those before are over",
        type=Number(10**7, "2000"),
        example="2000",
    ),
    _spec(
        name="connections",
        beside=(_COUNT, _SIZE, _PACE),
        help="How many connections the requests share, which take turns on them; without it each request opens its own",
        type=Int(1, workload.MOST_REQUESTS),
        example="10",
    ),
    _spec(
        name="deadline",
        beside=(_COUNT, _SIZE, _PACE),
        help="How long a request may take before it counts as missed",
        type=Amount(Duration, least=1, most=10**15),
    ),
    _spec(
        name="draw",
        beside=(_COUNT, _SIZE, _PACE),
        help="A name that flows share which are to make the same requests at the same times: incast of many to one",
        type=Text(r"[a-z][a-z0-9_]{0,30}", "a name"),
        example="burst",
    ),
    _spec(
        name="every",
        beside=(_COUNT, _SIZE),
        help="In place of arrival_rate: a request comes each time that this has passed, the first one at once, like "
        "the chunks of a video",
        type=Amount(Duration, least=1000, most=10**12),
    ),
    _spec(
        name="fanout",
        beside=(_COUNT, _SIZE, _PACE),
        help="How many requests come at each time, each on a connection of its own: a query",
        type=Int(1, 1000),
    ),
    _spec(
        name="load",
        beside=(_COUNT, _SIZE, "[switch, rate, 1gbit]"),
        help="In place of arrival_rate: bytes of all requests a second, as a share of the least rate on the path",
        type=Number(10, "0.6 or 60%", percent=True),
        example="0.6",
    ),
    _spec(
        name="overload",
        beside=(_COUNT, _SIZE, _PACE),
        help="on: a load of 1 or more, of which queues grow until the last request has come, is meant",
        type=Switch(),
    ),
    _spec(
        name="request_size",
        beside=(_COUNT, _SIZE, _PACE, _ANSWERED),
        help=f"With reverse on: bytes that the client asks with; without it {workload.REQUEST_SIZE}B",
        type=Amount(Bytes, least=1, most=10**9),
    ),
    _spec(
        name="requests",
        beside=(_SIZE, _PACE),
        help=f"How many requests the flow makes, times fanout; of a point at most {workload.MOST_REQUESTS}; with "
        "reverse on the server answers each with so many bytes as `sizes` says",
        type=Int(1, workload.MOST_REQUESTS),
        example="100",
    ),
    _spec(
        name="sizes",
        beside=(_COUNT, _PACE),
        help="Sizes of the requests: a distribution by its name, one size, a CDF in a file beside the plan (lines of "
        "a size and the share of requests that are not larger), or a CDF in one line",
        type=Sizes(),
        example="websearch",
    ),
    _spec(
        name="think",
        beside=(_COUNT, _SIZE, _ANSWERED, "[flows, connections, 10]"),
        help="In place of load or arrival_rate: each of the connections asks again so long after an answer, on average "
        "(exponentially distributed)",
        type=Amount(Duration, least=1000, most=10**12),
    ),
]
