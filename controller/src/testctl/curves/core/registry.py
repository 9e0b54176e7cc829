# SPDX-License-Identifier: Apache-2.0
"""Finds the curves: every module beside `core` is one, under its file's name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

import testctl.curves
from testctl.curves.core.spec import CurveSpec, Line
from testctl.metrics.core.view import FlowView

Lines = Callable[[FlowView, int], list[Line]]
Beside = Callable[[FlowView, int, int, int], list[Line]]


@dataclass(frozen=True)
class Curve:
    """A curve file.

    compute  every sample of a flow
    lines    the lines of a figure, by flow and connection; None where `compute` alone says it
    beside   those that accompany them where each packet is shown, by flow, connection and time, [low, high)
    """

    spec: CurveSpec
    compute: Callable[[FlowView], pa.Table]
    lines: Lines | None
    beside: Beside | None


class CurveError(Exception):
    """A curve file is not complete: a fault of the program."""


def member(name: str, module: object) -> Curve:
    """The curve of a module; raises CurveError that names what is missing."""
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
    """All curves by file name, in the order of their figures; raises CurveError on an incomplete one."""
    names = [info.name for info in pkgutil.iter_modules(testctl.curves.__path__) if info.name != "core"]
    found = [member(name, importlib.import_module(f"testctl.curves.{name}")) for name in names]
    return {curve.spec.name: curve for curve in sorted(found, key=lambda one: (one.spec.place, one.spec.name))}
