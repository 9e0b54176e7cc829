# SPDX-License-Identifier: Apache-2.0
"""Guesses an application that writes for some time, and not some bytes: packets of the two look alike."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from testctl_agent.spec.units import Duration

from testctl.reproduce.application import Application
from testctl.reproduce.port import roundest
from testctl.reproduce.tuples import Tuple

_LEAST_NS = 1_000_000
MOST = 4
"""Guesses; each is run."""


def guesses(flows: Mapping[str, tuple[Application, ...]]) -> dict[str, tuple[Tuple, ...]]:
    """{what the application does: duration and pattern, of all flows alike}; {} where one closed apart from its data.

    A socket's buffer drains for a while after the application's end, so that the times are the roundest ones shortly
    before the times of packets.
    """
    apps = [conns[0] for conns in flows.values()]
    if any(app.close_ns is not None or app.start_ns or app.ended != "FIN" for app in apps):
        return {}
    end = _before(min(app.quiet_ns[-1] for app in apps))
    why = "guessed: times of the application shortly before the times of its packets"
    made = {}
    for pattern in _patterns(apps, end):
        values = {"duration": str(Duration(end))} | ({"pattern": pattern} if pattern else {})
        tuples = [Tuple(name, param, (value,), why) for name in flows for param, value in values.items()]
        made[f"{pattern or 'greedy'} until {Duration(end)}"] = tuple(tuples)
    return made


def _patterns(apps: list[Application], end: int) -> list[str]:
    """At most MOST patterns whose writes begin, or end, when data followed pauses; [""]: there was none.

    An application that is stopped in a write sends what that has left: so both begin and end may show.
    """
    pauses = [
        (at, last) for app in apps for (at, _), last in zip(app.writes[1:], app.quiet_ns[1:-1], strict=True) if at < end
    ]
    pauses += [(at, last) for app in apps for at, last in app.hints if last < at < end]
    if not pauses:
        return [""]
    begins = sorted({at for at, _ in pauses})
    every = gcd(*begins)
    made = []
    if len(begins) == 2:
        made.append(f"stall at {Duration(begins[0])} for {Duration(begins[1] - begins[0])}")
    elif len(begins) == 1:
        stop = _before(min(last for _, last in pauses))
        earlier = stop - 10 ** (len(str(stop)) - 1)  # a slow link drains a buffer for long
        made += [f"stall at {Duration(on)} for {Duration(every - on)}" for on in (stop, earlier) if on >= _LEAST_NS]
    for period in (every, every * 3, every * 2, every // 2):
        ends = {at % period for at, _ in pauses} - {0}
        on = ends.pop() if len(ends) == 1 else _before(min(last - (at - period) for at, last in pauses))
        if ends or not _LEAST_NS <= on < period or period % _LEAST_NS or all(at % period for at, _ in pauses):
            continue
        made.append(f"on-off {Duration(on)}/{Duration(period - on)}")
    return made[:MOST]


def _before(ns: int) -> int:
    return roundest(ns // 2, ns) if ns > 1 else 1
