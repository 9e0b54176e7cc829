# SPDX-License-Identifier: Apache-2.0
"""The rate of a switch port: how fast it sends, Ethernet headers counted."""

from __future__ import annotations

from testctl_agent.params.port_model import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Rate

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="rate",
    kind="port",
    help="Rate at which the port sends; none: as fast as the machine",
    type=Amount(Rate, least=8, most=10**13, none="none"),
    after=("mtu",),
)
