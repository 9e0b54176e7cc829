# SPDX-License-Identifier: Apache-2.0
"""How often the kernel's view of a host's TCP connections is sampled."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Duration

SPEC = ParamSpec(
    name="tcp_info",
    kind="host",
    role="collector",
    help="Time between two samples of struct tcp_info of every connection; off: none are taken",
    type=Amount(Duration, least=1000, most=3600 * 10**9, none="off"),
    default=Duration(10 * 10**6),
)
