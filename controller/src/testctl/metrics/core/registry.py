# SPDX-License-Identifier: Apache-2.0
"""Finds the metrics: every module beside `core` is one, under its file's name; not those that begin with _."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import testctl.metrics
from testctl.metrics.core.available import of_flow, of_point
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.records import Records

Compute = Callable[[Records, str], dict[str, Number]]


@dataclass(frozen=True)
class Metric:
    spec: MetricSpec
    compute: Compute


class MetricError(Exception):
    """A metric file is not complete, or yields what it did not declare: a fault of the program."""


def member(name: str, module: object) -> Metric:
    """The metric of a module; raises MetricError that names what is missing."""
    spec, compute = getattr(module, "SPEC", None), getattr(module, "compute", None)
    if not isinstance(spec, MetricSpec):
        raise MetricError(f"metrics/{name}: want SPEC, a MetricSpec; got {type(spec).__name__}")
    if spec.name != name:
        raise MetricError(f"metrics/{name}: want SPEC.name {name!r}, the file's name; got {spec.name!r}")
    if not callable(compute):
        raise MetricError(f"metrics/{name}: want a function compute(records, flow); got {type(compute).__name__}")
    if not spec.values:
        raise MetricError(f"metrics/{name}: want at least one value in SPEC.values; got none")
    for value in spec.values:
        if not value.needs:
            raise MetricError(
                f"metrics/{name}: {value.name}: want `needs`, the instruments it is measured by; got none"
            )
    return Metric(spec, compute)


@cache
def metrics() -> dict[str, Metric]:
    """All metrics by file name, sorted; raises MetricError on an incomplete or a duplicate one."""
    found: dict[str, Metric] = {}
    owner: dict[str, str] = {}
    for info in sorted(pkgutil.iter_modules(testctl.metrics.__path__), key=lambda m: m.name):
        if info.name == "core" or info.name.startswith("_"):
            continue
        metric = member(info.name, importlib.import_module(f"testctl.metrics.{info.name}"))
        for value in metric.spec.values:
            if value.name in owner:
                raise MetricError(f"metrics/{info.name}: {value.name} is already a value of {owner[value.name]}")
            owner[value.name] = info.name
        found[info.name] = metric
    return found


@cache
def metric_names() -> dict[str, MetricInfo]:
    """Every value a plan's `expect` may name, with its unit and help."""
    return {value.name: value for metric in metrics().values() for value in metric.spec.values}


def checked(metric: Metric, records: Records, flow: str) -> dict[str, Number]:
    """The values of a metric, NaN for what no instrument of the flow measured.

    Raises MetricError unless they are just the declared ones.
    """
    values = metric.compute(records, flow)
    wanted = {value.name for value in metric.spec.values}
    if set(values) != wanted:
        raise MetricError(
            f"metrics/{metric.spec.name}: want {', '.join(sorted(wanted))}; got {', '.join(sorted(values))}"
        )
    for value in metric.spec.values:
        got = values[value.name]
        if isinstance(got, str) != value.text and got == got:  # NaN is "not known" of either
            want = "text" if value.text else "a number"
            raise MetricError(f"metrics/{metric.spec.name}: {value.name}: want {want}; got {got!r}")
    there = of_flow(records, flow) if metric.spec.scope == "flow" else of_point(records)
    return {value.name: values[value.name] if value.measured_by(there) else NAN for value in metric.spec.values}
