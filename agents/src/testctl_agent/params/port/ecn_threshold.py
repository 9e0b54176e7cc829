# SPDX-License-Identifier: Apache-2.0
"""The ECN threshold of a switch port: how many bytes waiting make it mark."""

from __future__ import annotations

from testctl_agent.params.port_model import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="ecn_threshold",
    kind="port",
    help="Bytes waiting at which this port marks CE; none: it never marks",
    type=Amount(Bytes, least=1, most=2**31 - 1, none="none"),
    after=("mtu", "rate", "buffer"),
)
