# SPDX-License-Identifier: Apache-2.0
"""How a flow's receiving application reads."""

from __future__ import annotations

from functools import partial

from testctl_agent.params.types import Grammar
from testctl_agent.spec import schedule
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Rate

_spec = partial(ParamSpec, kind="flow", role="flow")


def base_units(text: str) -> str:
    """A read_pause as tgen takes it: nanoseconds; "" for none."""
    return ",".join(f"{low}-{high}" for low, high in schedule.parse_down(text))


SPECS = [
    _spec(
        name="read_pause",
        help="When the receiver reads nothing, by times after the flow's start: its receive window closes",
        type=Grammar(
            "times such as 2s-3s, or several as in '2s-3s; 5s-5500ms', or none",
            lambda text: schedule.show_down(schedule.parse_down(text)),
        ),
        default="none",
        example="2s-3s",
    ),
    _spec(
        name="read_rate",
        help="Rate at which each connection's receiver reads, 1 ms of it at a time, at least 1448 bytes; none: as it "
        "arrives",
        type=Amount(Rate, least=1, most=10**13, none="none"),
        default="none",
    ),
]
