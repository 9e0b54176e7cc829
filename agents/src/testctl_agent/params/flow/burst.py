# SPDX-License-Identifier: Apache-2.0
"""How much an application that has a rate writes at a time."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

SPEC = ParamSpec(
    name="burst",
    kind="flow",
    role="flow",
    help="Bytes that an application with a rate writes at a time; otherwise 1 ms of the rate, at least 1448",
    type=Amount(Bytes, least=1, most=10**12),
)
