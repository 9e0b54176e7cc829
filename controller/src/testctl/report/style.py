# SPDX-License-Identifier: Apache-2.0
"""Colours, signs and units that the page, the figures and the terminal share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testctl.results.layout import UNJUDGED

# Okabe and Ito's palette, told apart with any colour vision ("Color Universal Design", 2008).
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
SKY, PURPLE, GREY, BROWN = "#56b4e9", "#cc79a7", "#8a8f98", "#8c6d31"

ON_DARK = {BLUE: "#4da6e0"}
"""Colours that need more light on a dark page."""

LANES: Sequence[str] = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BROWN, GREY)
"""Colours of flows and connections, in order."""

DATA, RETRANS, ACK, STALL = BLUE, VERMILION, GREEN, ORANGE
"""Colours of a time-sequence figure."""

SACK, UNA, WINDOW = PURPLE, GREEN, BROWN
RECOVERY = {True: ORANGE, False: VERMILION}
"""Colours of a time-sequence figure with SACK blocks; of a fast recovery's time and of one after a timeout."""

FATE_COLOURS = {"dropped": PURPLE, "marked CE": BROWN}
"""Colours of what a switch did, in the same figure."""


@dataclass(frozen=True)
class Look:
    """How a verdict looks: never by colour alone."""

    colour: str
    sign: str
    rich: str


VERDICT_LOOKS = {
    "pass": Look(GREEN, "✓", "green"),
    "fail": Look(VERMILION, "✗", "red"),
    "invalid": Look(ORANGE, "?", "yellow"),
    "skip": Look(GREY, "–", "bright_black"),
    "broken": Look(PURPLE, "!", "magenta"),
}
SHOWN_LOOKS = {**VERDICT_LOOKS, UNJUDGED: Look(GREY, "·", "bright_black")}
"""Of verdicts, and of a point of a run in progress that is not judged yet."""


CLAIM_LOOKS = {
    "reproduced": Look(GREEN, "✓", "green"),
    "differs": Look(ORANGE, "≠", "yellow"),
    "holds": Look(GREEN, "✓", "green"),
    "fails": Look(VERMILION, "✗", "red"),
    "not measured": Look(GREY, "?", "bright_black"),
}
"""How a paper's claim looks."""


@dataclass(frozen=True)
class Unit:
    """A unit and what one of it is in the base unit (bit/s, s, ns or B)."""

    name: str
    size: float


def rate_unit(most_bps: float) -> Unit:
    """The unit in which a rate reads well."""
    return _pick(most_bps, (Unit("Gb/s", 1e9), Unit("Mb/s", 1e6), Unit("kb/s", 1e3)))


def time_unit(most_ns: float) -> Unit:
    """The unit in which a time in ns reads well."""
    return _pick(most_ns, (Unit("s", 1e9), Unit("ms", 1e6), Unit("µs", 1e3)))


def byte_unit(most_bytes: float) -> Unit:
    """The unit in which a size reads well."""
    return _pick(most_bytes, (Unit("GB", 1e9), Unit("MB", 1e6), Unit("kB", 1e3)))


def _pick(most: float, units: Sequence[Unit]) -> Unit:
    for unit in units:
        if most >= unit.size:
            return unit
    return units[-1]


def show_time(ns: float) -> str:
    """A time for reading, three digits: "200 ms", "1.25 s", "20 µs"."""
    if abs(ns) < 1000:
        return f"{ns:.3g} ns"
    unit = time_unit(abs(ns))
    return f"{_digits(ns / unit.size)} {unit.name}"


def show_rate(bps: float) -> str:
    """A rate for reading, three digits: "1.91 Gb/s"."""
    unit = rate_unit(abs(bps))
    return f"{_digits(bps / unit.size)} {unit.name}"


_MEASURED: dict[str, tuple[str, float]] = {
    "_bps": ("rate", 1.0),
    "_bytes": ("bytes", 1.0),
    "_ns": ("time", 1.0),
    "_us": ("time", 1e3),
    "_ms": ("time", 1e6),
    "_s": ("time", 1e9),
}
"""The suffix of a metric's name: what it measures, and what one of its unit is in bit/s, bytes or ns."""

_UNITS = {"rate": rate_unit, "bytes": byte_unit, "time": time_unit}


def _measured(metric: str) -> tuple[str, float]:
    return next((found for suffix, found in _MEASURED.items() if metric.endswith(suffix)), ("", 1.0))


def unit_of(metric: str, values: Sequence[float]) -> Unit:
    """The unit in which these values of a metric read well, and what one of it is in the metric's own unit."""
    kind, base = _measured(metric)
    if not kind:
        return Unit("", 1.0)
    unit = _UNITS[kind](max((abs(value) for value in values), default=0.0) * base)
    return Unit(unit.name, unit.size / base)


def show_metric(name: str, value: float | str | None) -> str:
    """A metric's value for reading; the unit is the suffix of its name (_bps, _ns, _us, _ms, _s, _bytes)."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value == 0:
        return "0"
    kind, base = _measured(name)
    if kind == "rate":
        return show_rate(value)
    if kind == "time":
        return show_time(value * base)
    if kind == "bytes":
        unit = byte_unit(abs(value))
        return f"{value / unit.size:.3g} {unit.name}"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value)}"
    return f"{value:.3g}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
