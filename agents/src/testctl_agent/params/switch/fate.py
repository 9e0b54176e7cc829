# SPDX-License-Identifier: Apache-2.0
"""The fates of a switch: the packets, by flow, that it drops, marks or changes."""

from __future__ import annotations

from testctl_agent.params.switch_backend import apply, read, unavailable
from testctl_agent.params.types import Grammar
from testctl_agent.spec import fate
from testctl_agent.spec.param import ParamSpec

__all__ = ["SPEC", "apply", "read", "unavailable"]

SPEC = ParamSpec(
    name="fate",
    kind="switch",
    help=(
        "What becomes of chosen packets, counted on the wire: drop, mark (CE), echo (set ECE), clear (CE) or delay (by "
        "a time, while those behind go on) the data, acks or bytes of a range (1-4, or 20- to the end), or every n-th, "
        "of a flow; what is sent again counts as a packet of its own, but with ', first' only first transmissions "
        "count; lose: drop at a rate, in bursts or not; reorder: delay at a rate; duplicate, corrupt (a bit of the "
        "payload, with 'header' of TCP's header; the checksum stays) and trim (the payload is cut off): chosen ones or "
        "at a rate; swap: chosen ones, each with the next one"
    ),
    type=Grammar(
        'fates such as "drop data 1-4 of bulk, first; lose 1e-5 of bulk seed 3; delay data 9 of bulk by 3ms", or none',
        lambda text: fate.show(fate.parse(text)),
    ),
    after=("flows",),
)
