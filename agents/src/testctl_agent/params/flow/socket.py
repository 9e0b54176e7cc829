# SPDX-License-Identifier: Apache-2.0
"""Options of a flow's sockets."""

from __future__ import annotations

from functools import partial

from testctl_agent.params.types import InSteps
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount, Choice, Int, Switch, Text
from testctl_agent.spec.units import Bytes, Duration

FAMILIES = (IPV4, IPV6) = (4, 6)

_spec = partial(ParamSpec, kind="flow", role="flow")

SPECS = [
    _spec(
        name="cc",
        help="Congestion control of this flow's sockets at both ends; without it that of the host",
        type=Text(r"[a-z][a-z0-9_]{0,14}", "the name of a congestion control, such as cubic"),
    ),
    _spec(
        name="family",
        help="IP version of the flow: 4, or 6; without it 4",
        type=Choice(FAMILIES),
    ),
    _spec(
        name="keepalive",
        help="Idle time before, and time between, keepalive probes (TCP_KEEPIDLE, TCP_KEEPINTVL); off: none",
        type=InSteps(Duration, least=10**9, most=32767 * 10**9, none="off", step=10**9),
        default="off",
    ),
    _spec(
        name="keepalive_probes",
        help="Unanswered keepalive probes after which the connection fails (TCP_KEEPCNT); without it the kernel's",
        type=Int(1, 127),
        example="3",
    ),
    # auto is a sixteenth of the receive buffer, at most 256 KiB, and grows with it: far below the window, so that
    # neither the sender nor the tuning of the window notices.  A mark near the window stops the sender until the
    # receiver wakes up.
    _spec(
        name="lowat",
        help="Bytes a receiver waits for before it reads (SO_RCVLOWAT); 1: it reads whatever is there; auto: a small "
        "part of the receive buffer",
        type=Amount(Bytes, least=1, most=10**9, none="auto"),
        default="auto",
    ),
    _spec(
        name="nodelay",
        help="TCP_NODELAY: on sends small writes at once, off is Nagle's algorithm",
        type=Switch(),
        default=False,
    ),
    _spec(
        name="notsent_lowat",
        help="Unsent bytes the socket takes (TCP_NOTSENT_LOWAT); they drain after the flow's end; none: the kernel's",
        type=Amount(Bytes, least=1, most=2 * 10**9, none="none"),
        default=Bytes(2**20),
    ),
    _spec(
        name="receive_buffer",
        help="SO_RCVBUF at both ends (the kernel doubles it); none: the kernel tunes it",
        type=Amount(Bytes, least=1000, most=10**9, none="none"),
        default="none",
    ),
    _spec(
        name="send_buffer",
        help="SO_SNDBUF at both ends (the kernel doubles it); none: the kernel tunes it",
        type=Amount(Bytes, least=2000, most=10**9, none="none"),
        default="none",
    ),
    _spec(
        name="user_timeout",
        help="How long data may stay unacknowledged before the connection fails (TCP_USER_TIMEOUT); off: the kernel's",
        type=InSteps(Duration, least=10**6, most=2 * 10**15, none="off", step=10**6),
        default="off",
    ),
]
