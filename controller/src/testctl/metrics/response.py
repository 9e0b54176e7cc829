# SPDX-License-Identifier: Apache-2.0
"""What becomes of the window at a rate of random loss: a point of a response function.

window_segments is goodput x RTT / MSS, with the round trip of the path's delays alone, so it is the mean
window where no queue stands, and no more than the bandwidth-delay product where one does.  The goodput is of the
second half of the flow's time: a response function is of the steady state, and a first slow start, with what it loses
by overshooting, would count as much as many later losses.

Reno's window is sqrt(3/2) / sqrt(p): Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP
Congestion Avoidance Algorithm", CCR 27(3), 1997, with every segment acknowledged (Linux counts segments,
not ACKs).
"""

from __future__ import annotations

import math

from testctl_agent.spec import fate, schedule
from testctl_agent.spec.units import Duration

from testctl.core import routes
from testctl.core.path import port_setting
from testctl.core.point import PointSpec
from testctl.metrics.core.spec import NAN, PLAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.metrics.goodput import compute as goodput
from testctl.records import Records

SPEC = MetricSpec(
    name="response",
    help="window against the rate of random loss, in the second half of a flow's time",
    needs="receiver",
    values=(
        MetricInfo("window_segments", "packets", "goodput_second_half_bps x RTT / MSS, RTT that of the path's delays"),
        MetricInfo(
            "random_loss_rate",
            "",
            "the rate at which the plan's fates lose the flow's segments; NaN without",
            needs=PLAN,
        ),
        MetricInfo("window_over_reno", "", "window_segments / (sqrt(3/2) / sqrt(random_loss_rate)), Mathis's Reno"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    arrived = seen.arrived
    segment = arrived.largest
    rate = loss_rate(records.point, seen.name)
    window = float(goodput(records, flow)["goodput_second_half_bps"]) / 8 * rtt_s(seen) / segment if segment else NAN
    return {
        "window_segments": window if window > 0 else NAN,
        "random_loss_rate": rate,
        "window_over_reno": window / reno_window(rate) if window > 0 else NAN,
    }


def reno_window(rate: float) -> float:
    """Segments; NaN for a rate that is none."""
    return math.sqrt(1.5 / rate) if rate > 0 else NAN


def rtt_s(flow: FlowView) -> float:
    """The delays of all ports on the way there and back."""
    point = flow.records.point
    hops = [hop for back in (False, True) for hop in routes.hops(point, flow.requested, back=back)]
    ports = [link for hop in hops for link in list(hop)[:1]]
    delays = [port_setting(point, switch, onward, "delay") for switch, onward in ports]
    return sum(schedule.steps_of(delay, Duration)[0].value or 0 for delay in delays) / 1e9


def loss_rate(point: PointSpec, flow: str) -> float:
    """Of all switches' `lose` rules for a flow: the chance that one of them loses a segment."""
    arrives = 1.0
    for switch in point.topology.switches:
        text = str(point.settings.get(switch, {}).get("fate") or fate.NONE)
        for rule in fate.parse(text):
            if rule.action == "lose" and rule.flow == flow:
                arrives *= 1 - rule.rate
    return 1 - arrives if arrives < 1 else NAN
