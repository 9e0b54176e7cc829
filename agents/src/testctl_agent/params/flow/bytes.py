# SPDX-License-Identifier: Apache-2.0
"""How much a flow sends."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

SPEC = ParamSpec(
    name="bytes",
    kind="flow",
    role="flow",
    help="Bytes that each connection sends; with a duration, whichever ends first",
    type=Amount(Bytes, least=1, most=10**18),
)
