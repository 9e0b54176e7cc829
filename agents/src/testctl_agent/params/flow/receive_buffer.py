# SPDX-License-Identifier: Apache-2.0
"""The receive buffer of a flow's sockets."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

SPEC = ParamSpec(
    name="receive_buffer",
    kind="flow",
    role="flow",
    help="SO_RCVBUF at both ends (the kernel doubles it); none: the kernel tunes it",
    type=Amount(Bytes, least=1000, most=10**9, none="none"),
    default="none",
)
