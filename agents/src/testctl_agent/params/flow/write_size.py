# SPDX-License-Identifier: Apache-2.0
"""How much one write is."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

MOST_TOGETHER = 2**30
"""Bytes of what all connections of a flow write from: each has a buffer of its own, in memory from the start."""

SPEC = ParamSpec(
    name="write_size",
    kind="flow",
    role="flow",
    help="Bytes of one write of the application, at most; of all connections of a flow together at most 1 GiB",
    type=Amount(Bytes, least=1, most=10**9),
    default=Bytes(2**20),
)
