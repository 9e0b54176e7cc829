# SPDX-License-Identifier: Apache-2.0
"""The delay of a switch port: how long a packet takes to the neighbour once it was sent."""

from __future__ import annotations

from testctl_agent.params.port_model import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Duration

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="delay",
    kind="port",
    help="One-way delay from this port to its neighbour",
    type=Amount(Duration, most=10**12),
    after=("mtu",),
)
