# SPDX-License-Identifier: Apache-2.0
"""What `testctl metrics NAME` says of a metric."""

from __future__ import annotations

from testctl.cli.parameter_page import in_lines
from testctl.metrics import INSTRUMENTS, PLAN, MetricInfo, metric_names, metrics

BETTER = {"higher": "a higher value is better", "lower": "a lower value is better", "none": "neither"}


def page(name: str) -> str:
    info = metric_names()[name]
    bound = "max" if info.better == "lower" else "min"
    spec = next(metric.spec for metric in metrics().values() if any(v.name == name for v in metric.spec.values))
    lines = [
        ("", info.help),
        ("unit", "text" if info.text else info.unit or "none: a number or a ratio"),
        ("better", BETTER[info.better]),
        ("of", "each flow" if spec.scope == "flow" else "all flows of a point together"),
        ("from", measured_from(info)),
        ("null", _null(info)),
        ("see", f"{spec.name}: {spec.help}"),
        ("example", "" if info.text else f"- {{metric: {info.name}, {bound}: 1}}"),
    ]
    return in_lines(name, lines)


def measured_from(info: MetricInfo) -> str:
    """The instruments in words, with the alternatives."""
    if info.needs == PLAN:
        return "the plan, without any instrument"
    ways = [way.split(" and ") for way in info.needs.split(" or ")]
    return "; or ".join(" and ".join(INSTRUMENTS[name] for name in names) for names in ways)


def _null(info: MetricInfo) -> str:
    """When it has no value."""
    own = "where the text above says NaN" if "NaN" in info.help else ""
    without = "" if info.needs == PLAN else "where these instruments were off"
    when = ", and ".join(part for part in (without, own) if part)
    return f"{when}; an expectation of it is invalid then" if when else ""
