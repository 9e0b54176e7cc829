# SPDX-License-Identifier: Apache-2.0
"""The congestion control of one flow."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Text

SPEC = ParamSpec(
    name="cc",
    kind="flow",
    role="flow",
    help="Congestion control of this flow's sockets at both ends; without it that of the host",
    type=Text(r"[a-z][a-z0-9_]{0,14}", "the name of a congestion control, such as cubic"),
)
