# SPDX-License-Identifier: Apache-2.0
"""With whom a host or switch of a lab shares a kernel, and so a process."""

from __future__ import annotations

from testctl_agent.spec.param import Kind, ParamSpec
from testctl_agent.spec.types import Text

SHARED, OWN = "shared", "own"


def spec(kind: Kind) -> ParamSpec:
    return ParamSpec(
        name="partition",
        kind=kind,
        help=(
            f"The kernel process of a lab that this {kind} is in: {SHARED}, with all others of its `kernel` (switches "
            f"with the first host); {OWN}, for it alone; or a name, with all others of that name and `kernel`.  All "
            "have one virtual time; links between partitions want a delay"
        ),
        type=Text(r"[A-Za-z][A-Za-z0-9_-]{0,31}", f"{SHARED}, {OWN} or a name"),
        role="testbed",
        testbeds=frozenset({"lab"}),
        example=OWN,
        beside=("[switch, delay, 5us]",),
    )
