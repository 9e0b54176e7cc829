# SPDX-License-Identifier: Apache-2.0
"""Whether a host records what its TCP does, event by event."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

SPEC = ParamSpec(
    name="tcp_events",
    kind="host",
    role="collector",
    help="on: record cwnd, ssthresh, pipe, srtt, state, delivered, rates, what limits the sender and its congestion "
    "control's state at each ACK, transmission and timeout",
    type=Switch(),
    default=False,
)


def unavailable() -> str:
    """Why this host can't record them; "" when it can."""
    from testctl_agent.tcp_trace import bpf, lab  # controllers import this file for SPEC alone

    return "" if lab.LAB_FILE.exists() else bpf.unavailable()
