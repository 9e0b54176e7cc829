# SPDX-License-Identifier: Apache-2.0
"""The seed by which a switch spreads connections over ways of equal cost (spec/ecmp.py)."""

from __future__ import annotations

from testctl_agent.params.switch_backend import apply, read, unavailable
from testctl_agent.spec.ecmp import MAX_SEED
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int

__all__ = ["SPEC", "apply", "read", "unavailable"]

SPEC = ParamSpec(
    name="ecmp_seed",
    kind="switch",
    help=(
        "Which of several ways of equal cost a switch gives a connection: another seed, other ways. Switches with the "
        "same seed choose alike, those with other seeds independently"
    ),
    type=Int(0, MAX_SEED),
)
