# SPDX-License-Identifier: Apache-2.0
"""The marking threshold of a host's HTB."""

from __future__ import annotations

from testctl_agent.params.host_htb import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="htb_ecn_threshold",
    kind="host",
    help="Bytes waiting in HTB at which it marks (see htb_mark); none: it never marks",
    type=Amount(Bytes, least=1, most=2**31 - 1, none="none"),
    after=("htb_rate", "htb_mark"),
)
