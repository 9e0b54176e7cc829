# SPDX-License-Identifier: Apache-2.0
"""The P4 program that a switch forwards by, in place of the testbed's own."""

from __future__ import annotations

from testctl_agent.params.switch_backend import apply, read, unavailable
from testctl_agent.params.types import FileText
from testctl_agent.spec import p4_program
from testctl_agent.spec.param import ParamSpec

__all__ = ["SPEC", "apply", "read", "unavailable"]

SPEC = ParamSpec(
    name="program",
    kind="switch",
    help=(
        "The P4 program that forwards: the path, from the plan, of a file for v1model (p4c compiles it) or of the JSON "
        "that p4c-bm2-ss makes; packet actions, telemetry and links are the testbed's as before"
    ),
    type=FileText(
        "the path of a P4 program that begins at the plan, such as ./codel.p4, or none",
        p4_program.canonical,
        p4_program.of_file,
    ),
    testbeds=frozenset({"lab"}),
)
