# SPDX-License-Identifier: Apache-2.0
"""A switch port: its queue, and the link behind it."""

from __future__ import annotations

from functools import partial

from testctl_agent.params.switch_backend import apply, read, unavailable
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes, Duration, Rate

__all__ = ["SPECS", "apply", "read", "unavailable"]

_spec = partial(ParamSpec, kind="port")

SPECS = [
    _spec(
        name="buffer",
        help="Bytes that may wait at this port; none: as many as come",
        type=Amount(Bytes, least=1, most=2**32 - 1, none="none"),
        after=("mtu", "rate", "delay"),
    ),
    _spec(
        name="delay",
        help="One-way delay from this port to its neighbour",
        type=Amount(Duration, most=10**12),
        after=("mtu",),
    ),
    _spec(
        name="ecn_threshold",
        help="Bytes waiting at which this port marks CE; none: it never marks",
        type=Amount(Bytes, least=1, most=2**31 - 1, none="none"),
        after=("mtu", "rate", "buffer"),
    ),
    _spec(
        name="framing",
        help="Bytes that each packet takes on the wire beyond its own; Ethernet's preamble, check sequence and gap "
        "are 24",
        type=Amount(Bytes, most=1000),
        after=("mtu",),
    ),
    _spec(
        name="rate",
        help="Rate at which the port sends; none: as fast as the machine",
        type=Amount(Rate, least=8, most=10**13, none="none"),
        after=("mtu",),
    ),
]
