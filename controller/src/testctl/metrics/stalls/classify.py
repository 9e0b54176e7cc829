# SPDX-License-Identifier: Apache-2.0
"""Says why a silence was and how it ended, from its evidence alone."""

from __future__ import annotations

from testctl.metrics.recovery.flow_timers import UNSURE
from testctl.metrics.recovery.timers import PROBE, RTO
from testctl.metrics.stalls.evidence import Evidence

_WAITED_IN_HOST = 2


def classify(e: Evidence, unsure_is: str = "") -> tuple[str, str]:
    """(cause, ended_by) of a silence: keys of CAUSES and ENDS.

    unsure_is: what new data is taken for that either a timer or the application let go; by default for a probe when it
    left alone, else for the application's.
    """
    ended_by = _ended_by(e, unsure_is)
    return _cause(e, ended_by), ended_by


def _ended_by(e: Evidence, unsure_is: str) -> str:
    if e.ender_row < 0:
        return "end"
    if e.timer in (RTO, PROBE) and e.own_wait_ns < e.length_ns // _WAITED_IN_HOST:
        return e.timer
    if e.timer == UNSURE:
        return unsure_is or (PROBE if e.ender_alone else "new_data")
    return "ack" if e.trigger or e.ender_retrans else "new_data"


def _cause(e: Evidence, ended_by: str) -> str:
    half = e.length_ns // 2
    if e.own_wait_ns > half:
        return "tokens"
    if e.unanswered:
        return ended_by if ended_by == "rto" else "path"
    if ended_by == "new_data" and e.unsent_bytes == 0:
        return "application"
    if e.outstanding_bytes == 0:
        return "window" if e.window_room < e.mss else "application"
    if e.lost_bytes > 0:
        return ended_by if ended_by in ("rto", "tlp") else "loss"
    if e.missing_bytes > 0:
        return "path"
    if e.refused:
        return "window"
    if ended_by == "new_data" and not (e.unsent_bytes > 0 and e.owed_bytes > 0):
        return "application"
    if ended_by == "ack":
        if e.trigger_wait_ns > half:
            return "delayed_ack"
        if e.window_room < e.mss:
            return "window"
        return "loss" if e.again_ns > half else "path"
    if e.owed_bytes > 0:
        return "ack_owed"
    if ended_by == "end":
        return "path"
    if e.under_way_ns >= 0:
        return "path" if e.under_way_ns > half else "delayed_ack"
    return ended_by  # the ACK was lost, or nothing is known of the receiver
