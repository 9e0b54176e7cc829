# SPDX-License-Identifier: Apache-2.0
"""Finds the rules: every module of testctl.rules except `core` and `judge` is one, under its file's name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import testctl.rules
from testctl.rules.core.needs import DOUBTS, absent, lacking
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace

Check = Callable[[Trace], Found]
"""What one end of a flow did wrong, by its trace."""


@dataclass(frozen=True)
class Rule:
    spec: RuleSpec
    check: Check

    def found(self, trace: Trace) -> Found:
        """What it finds at one end, if the trace has what it needs."""
        why = lacking(trace, self.spec.needs)
        if why:
            return undecided(why)
        found = NOTHING if absent(trace, self.spec.only_if) else self.check(trace)
        doubt = lacking(trace, self.spec.needs, DOUBTS) if found.count else ""
        return undecided(doubt) if doubt else found


@cache
def rules() -> dict[str, Rule]:
    """All rules by name, sorted."""
    found = {}
    for info in sorted(pkgutil.iter_modules(testctl.rules.__path__), key=lambda module: module.name):
        if info.name in ("core", "judge"):
            continue
        module = importlib.import_module(f"testctl.rules.{info.name}")
        spec: RuleSpec = module.SPEC
        if spec.name != info.name.replace("_", "-"):
            raise ValueError(f"rules/{info.name}: want SPEC.name {info.name.replace('_', '-')!r}; got {spec.name!r}")
        found[spec.name] = Rule(spec, module.check)
    return found
