# SPDX-License-Identifier: Apache-2.0
"""Whether a host of a lab has a kernel, and so a process, of its own."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

SPEC = ParamSpec(
    name="own_kernel",
    kind="host",
    help=(
        "A kernel for this host alone, in one virtual time with the others'; the links between them want a delay; "
        "without it hosts with the same `kernel` share one, and switches the first host's"
    ),
    type=Switch(),
    role="testbed",
    testbeds=frozenset({"lab"}),
)
