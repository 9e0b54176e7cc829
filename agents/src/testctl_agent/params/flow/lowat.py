# SPDX-License-Identifier: Apache-2.0
"""How much a receiver waits for.

auto is a sixteenth of the receive buffer, at most 256 KiB, and grows with it: far below the
window, so that neither the sender nor the tuning of the window notices.  A mark near the window
stops the sender until the receiver wakes up.
"""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes

SPEC = ParamSpec(
    name="lowat",
    kind="flow",
    role="flow",
    help="Bytes a receiver waits for before it reads (SO_RCVLOWAT); 1: it reads whatever is there; auto: a small "
    "part of the receive buffer",
    type=Amount(Bytes, least=1, most=10**9, none="auto"),
    default="auto",
)
