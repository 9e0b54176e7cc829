# SPDX-License-Identifier: Apache-2.0
"""The buffer of a switch port: how many bytes may wait to be sent."""

from __future__ import annotations

from testctl_agent.params.port_model import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="buffer",
    kind="port",
    help="Bytes that may wait at this port; none: as many as come",
    type=Amount(Bytes, least=1, most=2**32 - 1, none="none"),
    after=("mtu", "rate", "delay"),
)
