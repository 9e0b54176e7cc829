# SPDX-License-Identifier: Apache-2.0
"""How much one write is."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

SPEC = ParamSpec(
    name="write_size",
    kind="flow",
    role="flow",
    help="Bytes of one write of the application, at most",
    type=Amount(Bytes, least=1, most=10**9),
    default=Bytes(2**20),
)
