# SPDX-License-Identifier: Apache-2.0
"""cwnd and ssthresh when a recovery ends, just before the ACK that ends it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testctl.metrics.recovery.walk import RECOVERY, Episode, Walk

NOWHERE = "unknown"
_INFINITE = 0x7FFFFFFF


class Window(NamedTuple):
    """Segments, -1 unknown; source: tcp_info, flight (cwnd by what was in flight) or unknown."""

    cwnd: int
    ssthresh: int
    source: str


def window_at_exit(walk: Walk, episode: Episode) -> Window:
    """cwnd just before the exit, and the ssthresh of the recovery.

    Both by tcp_info when a sample lies between the last ACK before the exit and the exit; otherwise
    ssthresh by any sample of the recovery (it does not change in it), and cwnd by what was in flight:
    a sender that has data keeps its window full.
    """
    trace = walk.trace
    if episode.exited_by != "ack":
        return Window(-1, -1, NOWHERE)
    before = np.flatnonzero(trace.is_ack[episode.entry : episode.exit])
    last_ack = episode.entry + int(before[-1]) if len(before) else episode.entry
    cwnd, ssthresh = _samples(walk, episode, int(trace.time_ns[last_ack]))
    if cwnd >= 0:
        return Window(cwnd, ssthresh, "tcp_info")
    flight = -(-episode.pipe_exit // trace.mss)
    return Window(flight, ssthresh, "flight" if ssthresh >= 0 else NOWHERE)


def _samples(walk: Walk, episode: Episode, near_ns: int) -> tuple[int, int]:
    """(cwnd of the last sample after near_ns, ssthresh of the last sample of the recovery); -1 without."""
    trace = walk.trace
    info = trace.flow.info
    if not info:
        return -1, -1
    entry_ns, exit_ns = int(trace.time_ns[episode.entry]), int(trace.time_ns[episode.exit])
    time_ns = info["time_ns"]
    low, high = np.searchsorted(time_ns, [entry_ns + 1, exit_ns])
    part = slice(low, high)
    mine = (info["conn"][part] == trace.conn) & (info["ca_state"][part] == RECOVERY)
    mine &= (info["snd_ssthresh"][part] > 0) & (info["snd_ssthresh"][part] < _INFINITE)
    rows = np.flatnonzero(mine) + low
    if not len(rows):
        return -1, -1
    last = rows[-1]
    near = int(time_ns[last]) > near_ns
    return int(info["snd_cwnd"][last]) if near else -1, int(info["snd_ssthresh"][last])
