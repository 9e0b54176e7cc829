# SPDX-License-Identifier: Apache-2.0
"""The clocks of a flow's two hosts: how far apart, and how surely that is known.

outcome["clocks"] = {host: {"offset_ns", "error_ns", "source"}}: each host's clock less one that all of
them are compared with, the true offset lying within offset_ns +- error_ns throughout the traffic.  A testbed
whose hosts have one clock (the lab, namespaces of one machine) says nothing of clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testctl.metrics.core.spec import NAN, Number
from testctl.metrics.core.view import FlowView


@dataclass(frozen=True)
class Apart:
    """The receiver's clock less the sender's.  error_ns is infinite when nobody compared one of them."""

    offset_ns: int
    error_ns: float


def apart(flow: FlowView) -> Apart | None:
    """How far the clocks of a flow's ends are apart; None when they are one clock."""
    clocks = flow.records.outcome.clocks
    if not clocks:
        return None
    sender, receiver = clocks.get(flow.sender), clocks.get(flow.receiver)
    if sender is None or receiver is None:
        return Apart(0, float("inf"))
    return Apart(receiver.offset_ns - sender.offset_ns, receiver.error_ns + sender.error_ns)


def known(flow: FlowView, values_us: Mapping[str, Number]) -> dict[str, Number]:
    """Times between the two hosts, in µs; NaN for what the clocks' error exceeds."""
    clocks = apart(flow)
    if clocks is None:
        return dict(values_us)
    return {name: NAN if clocks.error_ns > float(value) * 1e3 else value for name, value in values_us.items()}
