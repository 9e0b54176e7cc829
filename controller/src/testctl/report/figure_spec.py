# SPDX-License-Identifier: Apache-2.0
"""The figures a plan asks for: `figures:`, a list of plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.units import Bytes, Duration, Rate

from testctl.results import RunPoint

KINDS = ("throughput", "sequence", "time_sequence", "response")
_FIELDS = ("title", "kind", "bin", "flow", "when", "from", "to")
_MOST_FIGURES = 20

Path = tuple[str | int, ...]
Places = Callable[[Path], str]
"""Where something of `figures:` stands, as an error says it: `places((0, "kind"))` -> "plans/x.yaml:40:7"."""


@dataclass(frozen=True)
class FigureSpec:
    """One panel: of the first point that meets `when`; kind response: of all that do.

    bin_ns    width of the bins (throughput)
    flow      "" for the first flow
    when      "entity.parameter" -> the values it may have, as written
    from_ns, to_ns   the time shown; to_ns 0 means to the end
    """

    title: str
    kind: str
    bin_ns: int = 10_000_000
    flow: str = ""
    when: Mapping[str, Sequence[str]] = field(default_factory=dict)
    from_ns: int = 0
    to_ns: int = 0


def _by_path(path: Path) -> str:
    return "figures" + "".join(f"[{step}]" for step in path)


def parse_figures(raw: object, places: Places = _by_path) -> list[FigureSpec]:
    """Read a plan's `figures:`.  Raises PlanError with the place of what is wrong."""
    if raw is None:
        return []
    if not isinstance(raw, list) or len(raw) > _MOST_FIGURES:
        raise PlanError(f"{places(())}: figures: want a list of at most {_MOST_FIGURES} figures; got {_short(raw)}")
    return [_figure(item, index, places) for index, item in enumerate(raw)]


def _figure(raw: object, index: int, places: Places) -> FigureSpec:
    if not isinstance(raw, dict):
        raise PlanError(f"{places((index,))}: figures: want a mapping with {', '.join(_FIELDS)}; got {_short(raw)}")
    for name in raw:
        if name not in _FIELDS:
            raise PlanError(
                f"{places((index, str(name)))}: figures: want one of {', '.join(_FIELDS)}; got {_short(name)}"
            )

    def text(name: str, default: str | None = None) -> str:
        value = raw.get(name, default)
        if not isinstance(value, str) or len(value) > 200:
            raise PlanError(f"{places((index, name))}: figures: {name}: want text; got {_short(value)}")
        return value

    def time(name: str, default: int) -> int:
        try:
            return int(Duration.parse(raw[name])) if name in raw else default
        except ValueError as error:
            raise PlanError(f"{places((index, name))}: figures: {name}: {error}") from error

    kind, width = text("kind", "throughput"), time("bin", 10_000_000)
    if kind not in KINDS:
        raise PlanError(f"{places((index, 'kind'))}: figures: kind: want one of {', '.join(KINDS)}; got {_short(kind)}")
    if width < 1000:
        raise PlanError(f"{places((index, 'bin'))}: figures: bin: want at least 1us; got {_short(raw['bin'])}")
    when = _when(raw.get("when", {}), index, places)
    start, end = time("from", 0), time("to", 0)
    if end and end <= start:
        raise PlanError(f"{places((index, 'to'))}: figures: to: want a time after `from`; got {_short(raw['to'])}")
    return FigureSpec(text("title"), kind, width, text("flow", ""), when, start, end)


def _when(raw: object, index: int, places: Places) -> dict[str, list[str]]:
    if not isinstance(raw, dict):
        raise PlanError(f"{places((index, 'when'))}: figures: when: want a mapping; got {_short(raw)}")
    found: dict[str, list[str]] = {}
    for key, value in raw.items():
        entity, dot, parameter = str(key).partition(".")
        values = value if isinstance(value, list) else [value]
        if not (entity and dot and parameter) or any(isinstance(item, list | dict) or item is None for item in values):
            where = places((index, "when", str(key)))
            raise PlanError(
                f"{where}: figures: when: want ENTITY.PARAMETER: value or values; got {_short({key: value})}"
            )
        found[str(key)] = [_written(item) for item in values]
    return found


def first_match(spec: FigureSpec, points: Sequence[RunPoint]) -> RunPoint | None:
    """The first point with records that meets `when`; None if there is none."""
    return next((point for point in matching(spec, points) if point.has_records), None)


def matching(spec: FigureSpec, points: Sequence[RunPoint]) -> list[RunPoint]:
    """The points that meet `when`."""
    return [point for point in points if all(_meets(point, key, values) for key, values in spec.when.items())]


def _meets(point: RunPoint, key: str, values: Sequence[str]) -> bool:
    """By the tuples as written (a group's name too); for an entity that no tuple names, by its settings."""
    entity, _, parameter = key.partition(".")
    given = [value for e, p, value in point.tuples if (e, p) == (entity, parameter)]
    settings: Mapping[str, Any] = point.point.get("settings", {}).get(entity, {})
    if not given and parameter in settings:
        given = [settings[parameter]]
    return bool(given) and any(same_value(_written(given[-1]), value) for value in values)


def same_value(a: str, b: str) -> bool:
    """Whether two values as written mean the same: "2gbit" and "2000mbit" do."""
    if a == b:
        return True
    for quantity in (Rate, Bytes, Duration):
        try:
            if quantity.parse(a) == quantity.parse(b):
                return True
        except ValueError:
            continue
    return False


def _written(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
