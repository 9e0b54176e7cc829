# SPDX-License-Identifier: Apache-2.0
"""Whether small writes wait for ACKs."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

SPEC = ParamSpec(
    name="nodelay",
    kind="flow",
    role="flow",
    help="TCP_NODELAY: on sends small writes at once, off is Nagle's algorithm",
    type=Switch(),
    default=False,
)
