# SPDX-License-Identifier: Apache-2.0
"""Readable units for rates, times, sizes and metrics, equal in tables, figures and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit and its size in the base unit (bit/s, s, ns or B)."""

    name: str
    size: float


_ROUNDS_UP = 0.9995
"""With three digits a number from here on is 1 of the next unit, not 1000 of its own."""

UNITS: Mapping[str, Sequence[Unit]] = {
    "rate": (Unit("Gb/s", 1e9), Unit("Mb/s", 1e6), Unit("kb/s", 1e3)),
    "bytes": (Unit("GB", 1e9), Unit("MB", 1e6), Unit("kB", 1e3)),
    "time": (Unit("s", 1e9), Unit("ms", 1e6), Unit("µs", 1e3)),
}
"""Readable units of a quantity, the largest first."""


def readable(quantity: str, most: float) -> Unit:
    """The largest unit in which `most`, given in the base unit, is one or more; else the smallest."""
    return next((unit for unit in UNITS[quantity] if most >= unit.size * _ROUNDS_UP), UNITS[quantity][-1])


def show_time(ns: float) -> str:
    """A time for reading, three digits: "200 ms", "1.25 s", "20 µs"."""
    return f"{ns:.3g} ns" if abs(ns) < 1000 else _shown("time", ns)


def show_rate(bps: float) -> str:
    """A rate for reading, three digits: "1.91 Gb/s"."""
    return _shown("rate", bps)


def _shown(quantity: str, value: float) -> str:
    unit = readable(quantity, abs(value))
    return f"{_digits(value / unit.size)} {unit.name}"


_MEASURED: dict[str, tuple[str, float]] = {
    "_bps": ("rate", 1.0),
    "_bytes": ("bytes", 1.0),
    "_ns": ("time", 1.0),
    "_us": ("time", 1e3),
    "_ms": ("time", 1e6),
    "_s": ("time", 1e9),
}
"""The quantity and unit of a metric, by the suffix of its name; the unit in bit/s, bytes or ns."""


def _measured(metric: str) -> tuple[str, float]:
    return next((unit for suffix, unit in _MEASURED.items() if metric.endswith(suffix)), ("", 1.0))


def unit_of(metric: str, values: Sequence[float]) -> Unit:
    """A readable unit for these values of a metric, and its size in the metric's unit."""
    kind, base = _measured(metric)
    if not kind:
        return Unit("", 1.0)
    unit = readable(kind, max((abs(value) for value in values), default=0.0) * base)
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
    if kind:
        return show_time(value * base) if kind == "time" else _shown(kind, value)
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value)}"
    return f"{value:.3g}"


def exact_metric(name: str, value: float | str) -> str:
    """A metric's value to six digits with its unit, as messages compare it: "42.7331 Mb/s", "0.301656"."""
    if isinstance(value, str):
        return value
    kind, base = _measured(name)
    if not value or not kind:
        return f"{value:.6g}"
    unit = unit_of(name, [value])
    if abs(value) < unit.size:
        unit = Unit({"rate": "bit/s", "bytes": "B", "time": "ns"}[kind], 1.0 / base)
    return f"{value / unit.size:.6g} {unit.name}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
