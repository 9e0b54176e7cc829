# SPDX-License-Identifier: Apache-2.0
"""Finds the metrics: every module except `core` is one, under its file's name; not those that begin with _.

Installed distributions add others by entry points of the group `testctl.metrics` (docs/extensions.md): the name is the
metric's, the value a module with SPEC and compute.  Nothing else adds one: neither a plan nor a run's directory.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.entry_points import Group

import testctl.metrics
from testctl.metrics.core.available import of_flow, of_point
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.records import Records

Compute = Callable[[Records, str], dict[str, Number]]


OTHERS = Group("testctl.metrics", "metric", "compute", {})


@dataclass(frozen=True)
class Metric:
    """distribution: the one that adds it; "" for testctl's own."""

    spec: MetricSpec
    compute: Compute
    distribution: str = ""


class MetricError(Exception):
    """A metric file is not complete, or yields what it did not declare: a fault of the program."""


def member(name: str, module: object) -> Metric:
    """The metric of a module; raises MetricError that names the missing part."""
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
    """All metrics by name, sorted, other distributions' last.

    Raises MetricError on an incomplete or a duplicate one, TestbedError when it is another distribution's.
    """
    by_name: dict[str, Metric] = {}
    owner: dict[str, str] = {}
    for info in sorted(pkgutil.iter_modules(testctl.metrics.__path__), key=lambda m: m.name):
        if info.name == "core" or info.name.startswith("_"):
            continue
        metric = member(info.name, importlib.import_module(f"testctl.metrics.{info.name}"))
        for value in metric.spec.values:
            if value.name in owner:
                raise MetricError(f"metrics/{info.name}: {value.name} is already a value of {owner[value.name]}")
            owner[value.name] = info.name
        by_name[info.name] = metric
    for name in OTHERS.names():
        metric = _other(name)
        taken = [value.name for value in metric.spec.values if value.name in owner]
        taken += [name] if name in by_name else []
        if taken:
            raise TestbedError(f"metric {name!r} of the distribution {metric.distribution}: {taken[0]} exists already")
        owner |= {value.name: name for value in metric.spec.values}
        by_name[name] = metric
    return by_name


def _other(name: str) -> Metric:
    """A metric of another distribution.  Raises TestbedError that names it."""
    module, distribution = OTHERS.module(name), OTHERS.distribution(name)
    try:
        made = member(name, module)
    except MetricError as error:
        raise TestbedError(f"the distribution {distribution}: {error}") from error
    return Metric(made.spec, made.compute, distribution)


@cache
def key_of_others() -> str:
    """Hash of the Python files of the packages that add metrics; "" where none does."""
    digest = hashlib.sha256()
    names = OTHERS.names()
    for name in names:
        path = Path(str(OTHERS.module(name).__file__))
        files = sorted(path.parent.rglob("*.py")) if "." in OTHERS.module(name).__name__ else [path]
        for file in files:
            digest.update(f"{name} {file.name}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16] if names else ""


@cache
def brought() -> dict[str, str]:
    """Every value of other distributions' metrics, with the distribution: {"longest_gap_s": "own-metric 1.0"}."""
    from importlib.metadata import version

    return {
        value.name: f"{metric.distribution} {version(metric.distribution)}"
        for metric in metrics().values()
        if metric.distribution
        for value in metric.spec.values
    }


@cache
def metric_names() -> dict[str, MetricInfo]:
    """Every value a plan's `expect` may name, with its unit and help."""
    return {value.name: value for metric in metrics().values() for value in metric.spec.values}


def checked(metric: Metric, records: Records, flow: str) -> dict[str, Number]:
    """The values of a metric, NaN for what no instrument of the flow measured.

    Raises MetricError unless they are just the declared ones; TestbedError for whatever a metric of another
    distribution raises.
    """
    if not metric.distribution:
        return _checked(metric, records, flow)
    try:
        return _checked(metric, records, flow)
    except Exception as error:
        who = f"metric {metric.spec.name!r} of the distribution {metric.distribution}"
        raise TestbedError(f"{who}: {type(error).__name__}: {error}") from error


def _checked(metric: Metric, records: Records, flow: str) -> dict[str, Number]:
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
