# SPDX-License-Identifier: Apache-2.0
"""Which points of a run a plan's figure is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testctl_agent.spec.types import shown
from testctl_agent.spec.units import Bytes, Duration, Rate

from testctl.plan import FigureSpec, figures_of
from testctl.results import Run, RunPoint
from testctl.results.layout import PLAN

_SHORT_SYSCTL = "net.ipv4."


def specs_of(run: Run) -> Sequence[FigureSpec]:
    """The figures that the plan of a run asks for.  Raises PlanError."""
    return figures_of(run.plan_text, f"{run.path}/{PLAN}")


def first_match(spec: FigureSpec, points: Sequence[RunPoint]) -> RunPoint | None:
    """The first point with records that meets `when`; None if there is none."""
    return next((point for point in matching(spec, points) if point.has_records), None)


def matching(spec: FigureSpec, points: Sequence[RunPoint]) -> list[RunPoint]:
    return [point for point in points if all(_meets(point, key, values) for key, values in spec.when.items())]


def missing(spec: FigureSpec, points: Sequence[RunPoint]) -> str:
    """Why there is nothing to draw, where no point with records meets `when`."""
    found = matching(spec, points)
    if not found:
        return "no point of this run meets `when`"
    verdicts = list(dict.fromkeys(point.verdict for point in found))
    what = " or ".join(verdicts)
    return f"its point is {what}" if len(found) == 1 else f"all of its {len(found)} points are {what}"


def _meets(point: RunPoint, key: str, values: Sequence[str]) -> bool:
    given = written_value(point, key, "")
    return bool(given) and any(same_value(given, _written(value)) for value in values)


def written_value(point: RunPoint, key: str, absent: str) -> str:
    """A point's value of "entity.parameter" as written; `absent` without one.

    By the tuples (a group's name too); for an entity that no tuple names, by its settings.
    """
    entity, _, parameter = key.partition(".")
    names = (parameter, _SHORT_SYSCTL + parameter, parameter.removeprefix(_SHORT_SYSCTL))
    for name in names:
        given = [value for e, p, value in point.tuples if (e, p) == (entity, name)]
        if given:
            return _written(given[-1])
    settings: Mapping[str, Any] = point.point.get("settings", {}).get(entity, {})
    return next((_written(settings[name]) for name in names if name in settings), absent)


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
    """A switch is on or off, however it was written."""
    text = shown(value)
    return {"true": "on", "false": "off"}.get(text, text)
