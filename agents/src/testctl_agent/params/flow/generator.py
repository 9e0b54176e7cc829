# SPDX-License-Identifier: Apache-2.0
"""The program that makes a flow's traffic."""

from __future__ import annotations

from pathlib import Path

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Choice

_GENERATORS = Path(__file__).parents[2] / "generators"
_NO_FLOW = ("probe",)
"""What tries a path and carries no flow."""

SPEC = ParamSpec(
    name="generator",
    kind="flow",
    role="flow",
    help="The program that makes the traffic: a file of generators/",
    type=Choice(tuple(sorted({path.stem for path in _GENERATORS.glob("[!_]*.py")}.difference(_NO_FLOW)))),
    default="tgen",
)
