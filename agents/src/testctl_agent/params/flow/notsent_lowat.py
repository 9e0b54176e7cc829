# SPDX-License-Identifier: Apache-2.0
"""How much unsent data a socket takes."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

SPEC = ParamSpec(
    name="notsent_lowat",
    kind="flow",
    role="flow",
    help="Unsent bytes the socket takes (TCP_NOTSENT_LOWAT); they drain after the flow's end; none: the kernel's",
    type=Amount(Bytes, least=1, most=2 * 10**9, none="none"),
    default=Bytes(2**20),
)
