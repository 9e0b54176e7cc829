# SPDX-License-Identifier: Apache-2.0
"""Whether the packets of a host are captured."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

SPEC = ParamSpec(
    name="capture",
    kind="host",
    role="collector",
    help="on: record the headers of every TCP packet at the host's device",
    type=Switch(),
    default=True,
)
