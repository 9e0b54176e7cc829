# SPDX-License-Identifier: Apache-2.0
"""How an application calls the kernel."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

SPEC = ParamSpec(
    name="blocking",
    kind="flow",
    role="flow",
    help="on: blocking calls; off: non-blocking ones and epoll",
    type=Switch(),
    default=True,
)
