# SPDX-License-Identifier: Apache-2.0
"""cwnd and ssthresh when a recovery ends, just before the ACK that ends it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testctl.metrics.recovery.kernel_trace import traced_columns
from testctl.metrics.recovery.state_machine import RECOVERY, Episode, Walk
from testctl.metrics.recovery.trace_part import Part
from testctl.records.schema import Ints

NOWHERE = "unknown"
_INFINITE = 0x7FFFFFFF


class WindowAtExit(NamedTuple):
    """Segments, -1 unknown; source: trace, tcp_info, flight (cwnd by what was in flight) or unknown."""

    cwnd: int
    ssthresh: int
    source: str


def window_at_exit(walk: Walk, episode: Episode, inside: Part, exit_ns: int) -> WindowAtExit:
    """cwnd just before the exit, and the ssthresh of the recovery, whose events are `inside`.

    Both by the kernel's trace when there is one and it was in recovery then; else both by tcp_info when a
    sample lies between the last ACK before the exit and the exit; otherwise ssthresh by any sample of the
    recovery (it does not change in it), and cwnd by what was in flight: a sender that has data keeps its
    window full.
    """
    trace = walk.trace
    if episode.exited_by != "ack":
        return WindowAtExit(-1, -1, NOWHERE)
    if (traced := _traced(walk, episode)) is not None:
        return traced
    entry_ns = int(inside.time_ns[0])
    ack_ns = inside.time_ns[inside.is_ack]
    info, samples, ssthresh = trace.info, _samples(walk, entry_ns, exit_ns), -1
    if len(samples):
        last = samples[-1]
        cwnd, ssthresh = int(info["snd_cwnd"][last]), int(info["snd_ssthresh"][last])
        if cwnd >= 0 and int(info["time_ns"][last]) > (int(ack_ns[-1]) if len(ack_ns) else entry_ns):
            return WindowAtExit(cwnd, ssthresh, "tcp_info")
    flight = -(-episode.pipe_exit // trace.mss)
    return WindowAtExit(flight, ssthresh, "flight" if ssthresh >= 0 else NOWHERE)


def smallest_window(walk: Walk, entry_ns: int, end_ns: int) -> int:
    """The least cwnd of the tcp_info samples of a recovery; -1 without any."""
    samples = _samples(walk, entry_ns, end_ns)
    return int(walk.trace.info["snd_cwnd"][samples].min()) if len(samples) else -1


def _traced(walk: Walk, episode: Episode) -> WindowAtExit | None:
    """By the last traced event before the recovery point was acknowledged; None without."""
    flow = walk.trace.flow
    events = traced_columns(flow.records, flow.name)
    own = np.flatnonzero(events["conn"] == walk.trace.conn)
    last = int(np.searchsorted(events["snd_una"][own], episode.point)) - 1
    if not 0 <= last < len(own) - 1 or events["state"][own[last]] != RECOVERY:
        return None
    cwnd, ssthresh = int(events["cwnd"][own[last]]), int(events["ssthresh"][own[last]])
    return WindowAtExit(cwnd, ssthresh, "trace") if ssthresh < _INFINITE else WindowAtExit(cwnd, -1, NOWHERE)


def _samples(walk: Walk, entry_ns: int, exit_ns: int) -> Ints:
    """The connection's tcp_info samples between two times at which the kernel was in recovery."""
    if not (info := walk.trace.info):
        return np.empty(0, np.int64)
    low, high = np.searchsorted(info["time_ns"], [entry_ns + 1, exit_ns])
    ssthresh = info["snd_ssthresh"][low:high]
    chosen = (info["ca_state"][low:high] == RECOVERY) & (ssthresh > 0) & (ssthresh < _INFINITE)
    return np.asarray(np.flatnonzero(chosen) + low)
