# SPDX-License-Identifier: Apache-2.0
"""Switch wait: for how long a flow's data packets waited at a switch port before the line began to send them.

By telemetry, at the port of the flow's way where it is longest on average: the time in the switch without the port's
delay and without what sending the packet takes, at the rates that are valid meanwhile; at a port with a trace, whose
opportunities take no time, until the one by which it has left.  Only ports with a rate are looked at, and whose delay
and jitter change nothing from one packet to the next.  A port with an AQM of several queues has the flow in one of
them, so this is the wait in that one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from testctl_agent.spec import jitter, schedule, trace
from testctl_agent.spec.units import Rate

from testctl.core.path import port_setting
from testctl.core.point import Point
from testctl.metrics.core.passages import Passage, data_passages
from testctl.metrics.core.percentiles import infos, summarise
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records
from testctl.records.schema import FATES, Array, Ints

_TAILS = ("p50", "p99", "p999")
_SIZES = 1 << 14
_NULL = "NaN where no port of the way has a rate, or those that have one have jitter or a delay that follows a schedule"
_HELD = tuple(FATES.index(name) for name in ("delay", "reorder"))

SPEC = MetricSpec(
    name="switch_wait",
    help="time that data packets wait at a switch port, without the port's delay and their own sending",
    needs="telemetry",
    values=(
        *infos("switch_wait", "wait of data packets at the port where it is longest on average", _TAILS, null=_NULL),
        MetricInfo("switch_wait_where", "", 'the port, such as "switch:receiver"', text=True),
    ),
)


def waits(flow: FlowView) -> tuple[Ints, str]:
    """(waits in ns of the packets that were sent, where); (none, "") when no port of the way is one to look at."""
    point = flow.records.point
    by_port = [(wait, passage.port) for passage in data_passages(flow) if len(wait := _waits(point, passage))]
    return max(by_port, key=lambda pair: float(pair[0].mean())) if by_port else (np.empty(0, np.int64), "")


def _waits(point: Point, passage: Passage) -> Ints:
    onward = passage.port.partition(":")[2]
    rate, delay, framing, shaken = (
        port_setting(point, passage.switch, onward, name) for name in ("rate", "delay", "framing", "jitter")
    )
    sent = passage.rows.sent_on
    if rate in (None, schedule.NONE) or isinstance(delay, str) or shaken not in (None, jitter.NONE) or not len(sent):
        return np.empty(0, np.int64)
    if sent["fate"].any():
        sent = sent.where(~np.isin(sent["fate"], _HELD))
    spent = sent["left_ns"] - sent["time_ns"]
    spent -= int(delay or 0)
    if schedule.is_schedule(rate):
        done = sent["left_ns"] - int(delay or 0)
        spent -= _changing_ns(schedule.steps_of(rate, Rate), done, sent["wire_bytes"] + np.int64(framing or 0))
    elif not trace.is_trace(rate):
        spent -= _sending_ns(sent["wire_bytes"], int(framing or 0), int(str(rate)))
    return np.asarray(np.maximum(spent, 0, out=spent))


def _sending_ns(size: Array, framing: int, rate: int) -> Ints:
    """How long each packet is sent, rounded up: a division for each size, where there are few."""
    few = len(size) > _SIZES and 0 <= int(size.min()) <= int(size.max()) < _SIZES
    sizes = np.arange(_SIZES) if few else size.astype(np.int64)
    took = -(-(sizes + framing) * 8 * 10**9 // rate)
    return np.asarray(took[size] if few else took)


def _changing_ns(steps: Sequence[schedule.Step], done: Ints, size: Ints) -> Ints:
    """The same by the times at which packets had been sent, where the rate follows a schedule."""
    began, left = done.copy(), size * 8 * 10**9
    for step in reversed(steps):
        here = np.flatnonzero((left > 0) & ((began > step.at_ns) | (step is steps[0])))
        if step.value is None:
            left[began >= step.at_ns] = 0
        elif not step.value:
            began[here] = step.at_ns
        else:
            took = -(-left[here] // step.value)
            if step is not steps[0]:
                took = np.minimum(took, began[here] - step.at_ns)
            began[here] -= took
            left[here] -= took * step.value
    return np.asarray(done - began)


def compute(records: Records, flow: str) -> dict[str, Number]:
    wait, where = waits(view(records, flow))
    return {**summarise("switch_wait", wait, _TAILS, own=True), "switch_wait_where": where or NAN}
