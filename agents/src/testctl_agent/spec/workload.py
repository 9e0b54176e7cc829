# SPDX-License-Identifier: Apache-2.0
"""Workloads: distributions of sizes, and the requests that a flow's application makes, drawn with a seed.

A distribution is its cumulative distribution function (CDF) as text, "SIZE:SHARE SIZE:SHARE …": bytes, and the share of
requests that are not larger.  Neither falls, and the last share is 1.  Between two points the share grows linearly; a
share that is above 0 at the first point, or that grows while the size does not, belongs to just this size.

Both ends of a flow, and the controller, draw the same requests.  Python keeps random.Random(text).random() the same in
all its versions; the rest is +, -, * and / of IEEE 754, and log() for the times.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Bytes

MOST_REQUESTS = 30_000
"""Of all flows of a point together: connections have numbers of 16 bits, and each has a port of its own."""
MOST_POINTS = 1000
LARGEST = 10**12
REQUEST_SIZE = 100
"""Bytes of a request that is answered, by default."""
_DIRECTORY = Path(__file__).parent / "sizes"


@dataclass(frozen=True)
class Distribution:
    """Sizes in bytes, and the share of requests that are not larger than each."""

    sizes: tuple[int, ...]
    shares: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Bytes of a request on average."""
        ends = list(zip(self.sizes, self.shares, strict=True))
        between = math.fsum((b[1] - a[1]) * (a[0] + b[0]) / 2 for a, b in pairwise(ends))
        return self.sizes[0] * self.shares[0] + between

    def quantile(self, share: float) -> int:
        """The size of at least 1 byte that this share of requests does not exceed."""
        at = bisect_left(self.shares, share)
        if at == 0:
            return max(self.sizes[0], 1)
        low, high = self.shares[at - 1], self.shares[at]
        part = (share - low) / (high - low)
        return max(int(self.sizes[at - 1] + part * (self.sizes[at] - self.sizes[at - 1]) + 0.5), 1)

    def __str__(self) -> str:
        return " ".join(f"{size}:{share:.10g}" for size, share in zip(self.sizes, self.shares, strict=True))


def names() -> list[str]:
    """The distributions that there are by name."""
    return sorted(path.stem for path in _DIRECTORY.glob("*.cdf"))


def named(name: str) -> Distribution:
    """A distribution of names()."""
    return read((_DIRECTORY / f"{name}.cdf").read_bytes())


def read(data: bytes) -> Distribution:
    """The distribution of a file: a size and a share a line, after # a comment.

    Raises ValueError "line N: want …; got …".
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: want text in UTF-8; got a byte that is none") from error
    lines = [(number, line.partition("#")[0].split()) for number, line in enumerate(text.splitlines(), 1)]
    points: list[tuple[int, float]] = []
    last = 1
    for number, fields in lines:
        if not fields:
            continue
        last = number
        if len(fields) != 2:
            got = " ".join(fields)[:60]
            raise ValueError(f"line {number}: want a size and a share, such as 10kB 0.15; got {got!r}")
        try:
            points.append(_point(*fields))
            _check_next(points)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    try:
        return _whole(points)
    except ValueError as error:
        raise ValueError(f"line {last}: {error}") from error


@functools.lru_cache(maxsize=64)
def parse(text: str) -> Distribution:
    """The distribution of its text, "0B:0 10kB:0.15 1MB:1".  Raises ValueError "want …; got …"."""
    points: list[tuple[int, float]] = []
    for word in text.split():
        size, colon, share = word.partition(":")
        if not colon:
            raise ValueError(f"want SIZE:SHARE, such as 10kB:0.15; got {word!r}")
        points.append(_point(size, share))
        _check_next(points)
    return _whole(points)


def fixed(size: int) -> Distribution:
    """Requests of one size."""
    return Distribution((size,), (1.0,))


def of_text(text: str) -> Distribution:
    """By a name of names(), by one size, or by the text of a distribution.  Raises ValueError "want …; got …"."""
    if text in names():
        return named(text)
    if ":" in text:
        return parse(text)
    try:
        size = int(Bytes.parse(text))
    except ValueError as error:
        known = ", ".join(names())
        raise ValueError(f"want sizes: {known}, a size such as 20kB, or '1kB:0.5 1MB:1'; got {text[:80]!r}") from error
    if not 1 <= size <= LARGEST:
        raise ValueError(f"want a size from 1B to {Bytes(LARGEST)}; got {text[:80]!r}")
    return fixed(size)


def _point(size: str, share: str) -> tuple[int, float]:
    value = int(Bytes.parse(size))
    try:
        part = float(share)
    except ValueError:
        part = math.nan
    if not 0 <= part <= 1:
        raise ValueError(f"want a share from 0 to 1; got {share!r}")
    if value > LARGEST:
        raise ValueError(f"want a size of at most {Bytes(LARGEST)}; got {size!r}")
    return value, part


def _check_next(points: list[tuple[int, float]]) -> None:
    if len(points) > MOST_POINTS:
        raise ValueError(f"want at most {MOST_POINTS} points; got more")
    if len(points) < 2:
        return
    (size, share), (next_size, next_share) = points[-2:]
    if next_size < size:
        raise ValueError(f"want sizes that do not fall; got {next_size} after {size}")
    if next_share < share:
        raise ValueError(f"want shares that do not fall; got {next_share:g} after {share:g}")


def _whole(points: list[tuple[int, float]]) -> Distribution:
    if not points:
        raise ValueError("want at least one size and its share; got none")
    if points[-1][1] != 1:
        raise ValueError(f"want a distribution that ends with share 1; got {points[-1][1]:g} at {points[-1][0]} bytes")
    if points[-1][0] < 1:
        raise ValueError("want a largest size of at least 1 byte; got 0")
    return Distribution(tuple(size for size, _ in points), tuple(share for _, share in points))


@dataclass(frozen=True)
class Request:
    """What an application asks of a connection.

    at_ns   when, after the flow's start; on a connection that is busy then, when that is free
    conn    the connection's number; its first request opens it, its last one closes it
    up      bytes from the client to the server; down: then back
    think_ns   how long after the end of the one before it on its connection it comes at the earliest
    """

    at_ns: int
    conn: int
    up: int
    down: int = 0
    think_ns: int = 0


def asks(options: Mapping[str, Value]) -> bool:
    """Whether a flow with these options makes requests."""
    return options.get("requests") is not None


def thinks(options: Mapping[str, Value]) -> bool:
    """Whether its connections ask again some time after each answer, and not at times of their own."""
    return options.get("think") is not None


def fanout(options: Mapping[str, Value]) -> int:
    """How many requests come at a time."""
    return int(options.get("fanout") or 1)


def count(options: Mapping[str, Value]) -> int:
    """How many requests a flow makes."""
    return int(options.get("requests") or 0) * fanout(options)


def connections(options: Mapping[str, Value]) -> int:
    """How many connections the requests of a flow open."""
    return min(int(options.get("connections") or count(options)), count(options))


def requests(options: Mapping[str, Value], stream: str) -> tuple[Request, ...]:
    """The requests of a flow, in the order in which they come.

    options  with requests, sizes and arrival_rate (a second), every or think (ns); fanout, connections, reverse,
             request_size
    stream   what tells flows apart that are not to make the same requests; see stream_of()

    Arrivals are a Poisson process, unless they come `every` so often: what lies between two is exponentially
    distributed, and so is the time that an application thinks.  At each step one number decides about the time, and
    then one about each size.
    """
    answered = bool(options.get("reverse"))
    up = int(options.get("request_size") or REQUEST_SIZE) if answered else 0
    think = float(options["think"]) if thinks(options) else 0.0
    rate = 0.0 if think else float(options["arrival_rate"])
    shape = (int(options["requests"]), fanout(options), connections(options))
    return _drawn(shape, str(options["sizes"]), rate, think, int(options.get("every") or 0), up, stream)


@functools.lru_cache(maxsize=8)
def _drawn(
    shape: tuple[int, int, int], sizes: str, rate: float, think_ns: float, every_ns: int, up: int, stream: str
) -> tuple[Request, ...]:
    arrivals, wide, conns = shape
    import random  # for flows that make requests

    source, distribution = random.Random(stream), parse(sizes)
    drawn, at_s = [], 0.0
    for arrival in range(arrivals):
        unit = -math.log(1.0 - source.random())
        at_s += unit / rate if rate else 0.0
        for number in range(arrival * wide, (arrival + 1) * wide):
            size = distribution.quantile(source.random())
            at_ns, pause_ns = round(at_s * 1e9), 0
            if every_ns:
                at_ns = arrival * every_ns
            elif not rate:
                thought_ns = round(unit * think_ns)
                at_ns, pause_ns = (thought_ns, 0) if number < conns else (0, thought_ns)
            ways = (up, size) if up else (size, 0)
            drawn.append(Request(at_ns, number % conns, *ways, pause_ns))
    return tuple(drawn)


def stream_of(seed: int, flow: str, options: Mapping[str, Value]) -> str:
    """Of a flow: by the point's seed, and what the flow shares with others by its option `draw`, or its name."""
    return f"{seed} {options.get('draw') or flow}"


def schedule(drawn: Iterable[Request]) -> str:
    """As tgen reads it, a line a request."""
    return "".join(f"{r.at_ns} {r.conn} {r.up} {r.down} {r.think_ns}\n" for r in drawn)
