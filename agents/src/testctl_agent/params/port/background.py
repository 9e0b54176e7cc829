# SPDX-License-Identifier: Apache-2.0
"""Background traffic of a port: the controller makes hosts and a flow of it, an agent does not know it."""

from __future__ import annotations

from testctl_agent.params.types import Grammar
from testctl_agent.spec import background
from testctl_agent.spec.param import ParamSpec

SPEC = ParamSpec(
    name="background",
    kind="port",
    role="traffic",
    help=(
        "Traffic of other hosts that leaves by this port: requests that come as a Poisson process, with a load as a "
        "share of the port's rate, and sizes as of a flow; a flow of its own in the results, background1, …"
    ),
    type=Grammar(background.WANT, background.canonical),
    testbeds=frozenset({"lab", "netns"}),
    example="30% 20kB",
    beside=("[switch:receiver, rate, 10mbit]",),
)
