# SPDX-License-Identifier: Apache-2.0
"""The framing of a switch port: what the wire adds to every packet."""

from __future__ import annotations

from testctl_agent.params.port_model import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="framing",
    kind="port",
    help="Bytes that each packet takes on the wire beyond its own; Ethernet's preamble, check sequence and gap are 24",
    type=Amount(Bytes, most=1000),
    after=("mtu",),
)
