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
    cwnd, ssthresh = _samples(walk, entry_ns, exit_ns, int(ack_ns[-1]) if len(ack_ns) else entry_ns)
    if cwnd >= 0:
        return WindowAtExit(cwnd, ssthresh, "tcp_info")
    flight = -(-episode.pipe_exit // trace.mss)
    return WindowAtExit(flight, ssthresh, "flight" if ssthresh >= 0 else NOWHERE)


def smallest_window(walk: Walk, entry_ns: int, end_ns: int) -> int:
    """The least cwnd of the tcp_info samples of a recovery; -1 without any."""
    rows = _rows(walk, entry_ns, end_ns)
    return int(walk.trace.info["snd_cwnd"][rows].min()) if len(rows) else -1


def _traced(walk: Walk, episode: Episode) -> WindowAtExit | None:
    """By the last traced event before the recovery point was acknowledged; None without."""
    flow = walk.trace.flow
    events = traced_columns(flow.records, flow.name)
    mine = np.flatnonzero(events["conn"] == walk.trace.conn)
    last = int(np.searchsorted(events["snd_una"][mine], episode.point)) - 1
    if not 0 <= last < len(mine) - 1 or events["state"][mine[last]] != RECOVERY:
        return None
    return WindowAtExit(int(events["cwnd"][mine[last]]), int(events["ssthresh"][mine[last]]), "trace")


def _samples(walk: Walk, entry_ns: int, exit_ns: int, near_ns: int) -> tuple[int, int]:
    """(cwnd of the last sample after near_ns, ssthresh of the last sample of the recovery); -1 without."""
    info = walk.trace.info
    rows = _rows(walk, entry_ns, exit_ns)
    if not len(rows):
        return -1, -1
    last = rows[-1]
    near = int(info["time_ns"][last]) > near_ns
    return int(info["snd_cwnd"][last]) if near else -1, int(info["snd_ssthresh"][last])


def _rows(walk: Walk, entry_ns: int, exit_ns: int) -> Ints:
    """The connection's tcp_info samples between two times at which the kernel was in recovery."""
    if not (info := walk.trace.info):
        return np.empty(0, np.int64)
    low, high = np.searchsorted(info["time_ns"], [entry_ns + 1, exit_ns])
    ssthresh = info["snd_ssthresh"][low:high]
    chosen = (info["ca_state"][low:high] == RECOVERY) & (ssthresh > 0) & (ssthresh < _INFINITE)
    return np.asarray(np.flatnonzero(chosen) + low)
