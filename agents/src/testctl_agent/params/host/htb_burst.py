# SPDX-License-Identifier: Apache-2.0
"""The bucket of a host's HTB."""

from __future__ import annotations

from testctl_agent.params.host_htb import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="htb_burst",
    kind="host",
    help="Bucket of HTB; none: 10 us of its rate, at least 1600 bytes",
    type=Amount(Bytes, least=1, most=2**30 - 1, none="none"),
    after=("htb_rate",),
)
