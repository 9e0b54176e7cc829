# SPDX-License-Identifier: Apache-2.0
"""Which end of a flow sends."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

SPEC = ParamSpec(
    name="reverse",
    kind="flow",
    role="flow",
    help="on: data goes from `to` to `from`: the client connects, the server sends",
    type=Switch(),
    default=False,
)
