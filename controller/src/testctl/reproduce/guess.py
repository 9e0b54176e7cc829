# SPDX-License-Identifier: Apache-2.0
"""Guesses an application that writes for some time, and not some bytes: packets of the two look alike."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from testctl_agent.spec.units import Duration

from testctl.reproduce.application import Application
from testctl.reproduce.port import roundest
from testctl.reproduce.tuples import Tuple


def guesses(flows: Mapping[str, tuple[Application, ...]]) -> dict[str, tuple[Tuple, ...]]:
    """{what the application does: duration and pattern, of all flows alike}; {} where one closed apart from its data.

    A socket's buffer drains for a while after the application's end, so that the times are the roundest ones shortly
    before the times of packets.
    """
    apps = [conns[0] for conns in flows.values()]
    if any(app.close_ns is not None or app.start_ns or app.ended != "FIN" for app in apps):
        return {}
    end = str(Duration(_before(min(app.quiet_ns[-1] for app in apps))))
    why = "guessed: times of the application shortly before the times of its packets"
    made = {}
    for pattern in _patterns(apps):
        values = {"duration": end} | ({"pattern": pattern} if pattern else {})
        tuples = [Tuple(name, param, (value,), why) for name in flows for param, value in values.items()]
        made[f"{pattern or 'greedy'} until {end}"] = tuple(tuples)
    return made


def _patterns(apps: list[Application]) -> list[str]:
    """on-off where writes followed pauses at multiples of a time, and a stall where it is only one; [""]: no pause."""
    begins = {at for app in apps for at, _ in app.writes[1:]}
    if not begins:
        return [""]
    every = gcd(*begins)
    quiet = [
        last - (at - every) for app in apps for (at, _), last in zip(app.writes[1:], app.quiet_ns[1:-1], strict=True)
    ]
    on = _before(min(quiet))
    if not 0 < on < every:
        return []
    both = (f"stall at {Duration(on)} for {Duration(every - on)}", f"on-off {Duration(on)}/{Duration(every - on)}")
    return list(both) if len(begins) == 1 else [both[1]]


def _before(ns: int) -> int:
    return roundest(ns // 2, ns) if ns > 1 else 1
