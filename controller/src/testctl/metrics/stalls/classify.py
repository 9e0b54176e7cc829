# SPDX-License-Identifier: Apache-2.0
"""Says why a silence was and how it ended, from its evidence alone.

Timers (Linux): a retransmission timeout (RFC 6298; at least 200 ms by default) sends the first
outstanding packet again; a tail loss probe (RFC 8985, section 7; about two round trips, at
least two jiffies) sends one packet at the tail, new data if there is any.
"""

from __future__ import annotations

from testctl.metrics.stalls.evidence import Evidence

_RTO_MIN_NS = 200_000_000
_ALMOST = 0.9


def classify(e: Evidence) -> tuple[str, str]:
    """(cause, ended_by) of a silence: keys of CAUSES and ENDS."""
    ended_by = _ended_by(e)
    return _cause(e, ended_by), ended_by


def _ended_by(e: Evidence) -> str:
    if e.ender_row < 0:
        return "end"
    if e.trigger:
        return "ack"
    if e.ender_retrans:
        return _which_timer(e)
    return "tlp" if _is_probe(e) else "new_data"


def _which_timer(e: Evidence) -> str:
    """Retransmission timeout or tail loss probe, when no ACK came before the retransmission."""
    head = e.ender_seq <= e.una
    tail = e.ender_seq + e.ender_length >= e.last_sent_end
    if head != tail:
        return "rto" if head else "tlp"
    # One packet outstanding is both head and tail: ask the kernel, then the clock.
    if e.rto_seen == 1 or e.probes == 0:
        return "rto"
    if e.rto_seen == 0 or e.timeouts == 0:
        return "tlp"
    rto_ns = e.rto_us * 1000 if e.rto_us > 0 else _RTO_MIN_NS
    return "rto" if e.waited_ns >= _ALMOST * rto_ns else "tlp"


def _is_probe(e: Evidence) -> bool:
    """Whether new data that no ACK let go is a probe rather than the application's.

    When tcp_info says that the application had data waiting, only a timer can have let it go.
    """
    waiting = e.notsent_bytes > 0 or (e.notsent_bytes < 0 and e.ender_alone)
    return (
        waiting
        and e.outstanding_bytes > 0
        and e.probes != 0
        and e.waited_ns >= 1.5 * e.srtt_ns
        and e.own_wait_ns < e.length_ns // 2
    )


def _cause(e: Evidence, ended_by: str) -> str:
    half = e.length_ns // 2
    if e.own_wait_ns > half:
        return "tokens"
    if e.outstanding_bytes == 0:
        return "window" if e.window_room < e.mss else "application"
    if e.lost_bytes > 0:
        return ended_by if ended_by in ("rto", "tlp") else "loss"
    if e.missing_bytes > 0:
        return "path"
    if ended_by == "new_data":
        return "application"
    if ended_by == "ack":
        if e.trigger_wait_ns > half:
            return "delayed_ack"
        return "window" if e.window_room < e.mss else "path"
    if e.owed_bytes > 0:
        return "ack_owed"
    if ended_by == "end":
        return "path"
    return ended_by  # the ACK was lost, or nothing is known of the receiver
