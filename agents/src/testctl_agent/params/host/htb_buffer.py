# SPDX-License-Identifier: Apache-2.0
"""The buffer below a host's HTB."""

from __future__ import annotations

from testctl_agent.params.host_htb import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="htb_buffer",
    kind="host",
    help="Bytes that may wait in HTB; none: 1 MB",
    type=Amount(Bytes, least=1, most=2**31 - 1, none="none"),
    after=("htb_rate",),
)
