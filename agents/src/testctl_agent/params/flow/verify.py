# SPDX-License-Identifier: Apache-2.0
"""Whether the content of a flow is checked."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

SPEC = ParamSpec(
    name="verify",
    kind="flow",
    role="flow",
    help="on: the receiver checks every byte that arrives",
    type=Switch(),
    default=False,
)
