# SPDX-License-Identifier: Apache-2.0
"""Finds the curves: every module except `core` is one, under its file's name.

Installed distributions add others by entry points of the group `testctl.curves` (docs/extensions.md).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.entry_points import Group

import testctl.curves
from testctl.curves.core.spec import CurveSpec, Line
from testctl.metrics.core.view import FlowView

OTHERS = Group("testctl.curves", "curve", "compute", {})
Lines = Callable[[FlowView, int], list[Line]]
Beside = Callable[[FlowView, int, int, int], list[Line]]


@dataclass(frozen=True)
class Curve:
    """A curve file.

    compute  every sample of a flow
    lines    the lines of a figure, by flow and connection; None: made from `compute`
    beside   accompanying lines, shown with single packets, by flow, connection and time, [low, high)
    """

    spec: CurveSpec
    compute: Callable[[FlowView], pa.Table]
    lines: Lines | None
    beside: Beside | None


class CurveError(Exception):
    """A curve file is not complete: a fault of the program."""


def member(name: str, module: object) -> Curve:
    """The curve of a module; raises CurveError that names the missing part."""
    spec, compute = getattr(module, "SPEC", None), getattr(module, "compute", None)
    if not isinstance(spec, CurveSpec):
        raise CurveError(f"curves/{name}: want SPEC, a CurveSpec; got {type(spec).__name__}")
    if spec.name != name:
        raise CurveError(f"curves/{name}: want SPEC.name {name!r}, the file's name; got {spec.name!r}")
    if not callable(compute):
        raise CurveError(f"curves/{name}: want a function compute(flow); got {type(compute).__name__}")
    return Curve(spec, compute, getattr(module, "lines", None), getattr(module, "beside", None))


@cache
def curves() -> dict[str, Curve]:
    """All curves by name, in the order of their figures.

    Raises CurveError on an incomplete one, TestbedError when it is another distribution's.
    """
    names = [info.name for info in pkgutil.iter_modules(testctl.curves.__path__) if info.name != "core"]
    members = [member(name, importlib.import_module(f"testctl.curves.{name}")) for name in names]
    members += [_other(name, names) for name in OTHERS.names()]
    return {curve.spec.name: curve for curve in sorted(members, key=lambda curve: (curve.spec.place, curve.spec.name))}


def _other(name: str, own: Collection[str]) -> Curve:
    """A curve of another distribution.  Raises TestbedError that names it."""
    module, distribution = OTHERS.module(name), OTHERS.distribution(name)
    if name in own:
        raise TestbedError(f"curve {name!r} of the distribution {distribution}: testctl has one of that name")
    try:
        return member(name, module)
    except CurveError as error:
        raise TestbedError(f"the distribution {distribution}: {error}") from error
