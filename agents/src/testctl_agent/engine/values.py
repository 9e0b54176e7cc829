# SPDX-License-Identifier: Apache-2.0
"""Whether a value that came over the wire is one that a plan could hold.

An agent trusts no controller to have checked.  The odd forms in which a parameter reads what testctl
did not set ("eth0=1500 eth1=9000") are for the journal alone: they could name another device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Value


def spec_of(parameter: Any, name: str) -> ParamSpec:
    """The spec of a parameter file's parameter, of one of several, or of one member of its family."""
    family: Callable[[str], ParamSpec] | None = getattr(parameter, "spec_for", None)
    several: Sequence[ParamSpec] = getattr(parameter, "SPECS", ())
    own = next((spec for spec in several if spec.name == name), None) or parameter.SPEC
    return family(name) if family else own


def check(who: str, spec: ParamSpec, value: Value) -> None:
    """Raise ApplyError unless the type takes the value as it is, in base units.

    (An Amount parses a Duration with its unit only, and gets it without.)
    """
    kind = spec.type
    if isinstance(kind, Amount) and isinstance(value, int) and not isinstance(value, bool):
        fits = kind.least <= value <= kind.most
    else:
        try:
            parsed = kind.parse(value)
            fits = isinstance(parsed, str) == isinstance(value, str) and isinstance(parsed, bool) == isinstance(
                value, bool
            )
        except (ValueError, TypeError, ArithmeticError):
            fits = False
    if not fits:
        text = str(value) if len(str(value)) <= 200 else f"{str(value)[:200]}…"
        raise ApplyError(f"{who}: want {kind.want}; got {text!r}")
