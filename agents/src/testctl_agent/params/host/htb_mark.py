# SPDX-License-Identifier: Apache-2.0
"""What a host's HTB marks when its queue is long."""

from __future__ import annotations

from testctl_agent.params.host_htb import apply, needs, read
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Choice

__all__ = ["SPEC", "apply", "needs", "read"]

SPEC = ParamSpec(
    name="htb_mark",
    kind="host",
    help="data: CE on data packets; ack: ECE on the ACKs that come back",
    type=Choice(("data", "ack")),
    after=("htb_rate",),
)
