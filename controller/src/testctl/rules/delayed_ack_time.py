# SPDX-License-Identifier: Apache-2.0
"""How long a receiver delays ACKs follows the time between what arrives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from testctl.records.schema import Ints
from testctl.rules.core.sender import kernel, ms, sysctl
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="delayed-ack-time",
    must="The time for which a receiver delays ACKs is at least 40 ms, or as its least RTO allows, and no longer than "
    "its RTO and what the time between arrivals in order makes of it.",
    source="Linux, tcp_event_data_recv()",
    level="Linux",
    quote="icsk->icsk_ack.ato = min3((icsk->icsk_ack.ato >> 1) + (u32)m, icsk->icsk_rto, (u32)TCP_DELACK_MAX)",
    linux="Judged are samples of tcp_info; it is 0 until data has come. The delayed-ACK timer may double it.",
)
_LEAST_MS, _MOST_MS = 40, 200
"""TCP_ATO_MIN; TCP_DELACK_MAX, which older kernels do not ask."""
_SETTLED = 8
"""Arrivals after which it no longer matters what it was before."""


def check(trace: Trace) -> Found:
    taken = samples(trace, "ato", "rto")
    # A tick less than the least RTO (tcp_delack_max(), since 6.7: bbf80d713fe7).
    by_rto = max(sysctl(trace, "tcp_rto_min_us", 1000 * (_MOST_MS + 1)) // 1000, 2) - 1
    longest = min(_MOST_MS, by_rto) if kernel(trace) >= (6, 12) else 1 << 20
    most = np.full(len(taken["row"]), longest)
    if trace.exact and not trace.delayed and not trace.incomplete:
        most = _most(trace, taken["row"], longest)
    most = np.minimum(taken["rto"], 1000 * most)
    ato, least = taken["ato"], 1000 * min(_LEAST_MS, longest)
    wrong = np.flatnonzero((ato > 0) & ((ato < least) | (ato > most)))
    rows, sample = taken["row"][wrong], trace.sparse(taken["row"][wrong], wrong)
    return where(
        np.isin(np.arange(len(trace)), rows),
        lambda row: (
            f"delays ACKs for {ms(1000 * ato[sample[row]])} at an RTO of "
            f"{ms(1000 * taken['rto'][sample[row]])}; by what arrived at most {ms(1000 * most[sample[row]])}"
        ),
    )


def _most(trace: Trace, rows: Ints, longest: int) -> Ints:
    """For each sample's row the longest that the arrivals up to it can lead to, in ms."""
    time, most = trace["time_ns"], np.full(len(rows), longest)
    came = ~trace.out & trace.data & (trace.arrived_to > trace.rcv_nxt) & trace.from_syn
    came &= trace.latest(came) < trace.instant  # the first of an instant
    late = trace.out & trace.pure_ack & (time - time[np.maximum(trace.latest(~trace.out), 0)] >= trace.at_once_ns)
    timers = trace.count(np.ones(len(trace), np.int64), late) + late
    place = np.flatnonzero(came)
    begins, ends = np.searchsorted(place, trace.first[rows]), np.searchsorted(place, rows, side="right")
    for sample, (row, begin, end) in enumerate(zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True)):
        used = place[max(begin, end - _SETTLED) : end].tolist()
        ato = _LEAST_MS if end - begin <= _SETTLED else longest
        for before, after in pairwise(used):
            ato = _next(ato << int(min(timers[after] - timers[before], 3)), (time[after] - time[before]) // 1_000_000)
        if used:
            most[sample] = min(ato << int(min(timers[row] - timers[used[-1]], 3)), longest)
    return most


def _next(ato: int, apart_ms: int) -> int:
    """At most after an arrival so long after the one before: jiffies may count one more."""
    least, longest = int(apart_ms), int(apart_ms) + 1
    half, some = _LEAST_MS // 2, []
    if least <= half:
        some.append(ato // 2 + half)
    if longest > half:
        some.append(ato // 2 + min(longest, ato - 1) if least < ato else ato)
    return max(some)
