# SPDX-License-Identifier: Apache-2.0
"""The rate of a host's HTB."""

from __future__ import annotations

from testctl_agent.params.host_htb import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Rate

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="htb_rate",
    kind="host",
    help="Rate limit of what the host sends (HTB); none: no limiter",
    type=Amount(Rate, least=8, most=10**13, none="none"),
)
