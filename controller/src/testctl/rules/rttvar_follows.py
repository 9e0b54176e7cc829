# SPDX-License-Identifier: Apache-2.0
"""The variation of the round-trip time follows the measured ones."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, SYN, Ints
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="rttvar-follows",
    must="RTTVAR moves by a quarter towards the difference between the round-trip time that an ACK measures and SRTT.",
    source="RFC 6298, 2.3",
    level="MUST",
    needs=("start", "order", "mtu"),
    quote="RTTVAR <- (1 - beta) * RTTVAR + beta * |SRTT - R'|",
    linux="By an eighth of that where the round-trip time falls and the difference is above RTTVAR: "
    "tcp_rtt_estimator().  Judged are samples of tcp_info of who opened the connection, before anything was SACKed or "
    "sent again.",
)
_ROUNDED_US = 16
_MOST = 4_000
"""RTTs from a connection's beginning that are judged."""


def check(trace: Trace) -> Found:
    taken, board = samples(trace, "rttvar"), trace.board
    rows, sampled, syn = taken["row"], board.samples >= 0, trace.out & trace.has(SYN)
    signs = board.again | (board.acks & (trace["sack1_end"] >= 0))
    judged = ~signs & (trace.latest(signs) < 0) & (trace.count(np.ones(len(trace), np.int64), sampled) < _MOST)
    judged &= trace.from_syn & trace.anywhere(syn & ~trace.has(ACK)) & ~trace.anywhere(syn & (trace.latest(syn) >= 0))
    last = np.where(sampled, np.arange(len(trace)), trace.latest(sampled))[rows]
    measured = np.flatnonzero(sampled)
    wanted = trace.sparse(measured, _rttvar(trace, measured))[np.maximum(last, 0)]
    settled = taken["time_ns"] - trace["time_ns"][rows] >= trace.at_once_ns
    off = np.abs(taken["rttvar"] - wanted) > _ROUNDED_US + wanted // 64
    wrong = np.flatnonzero(judged[rows] & settled & (last >= 0) & off)
    sample = trace.sparse(rows[wrong], wrong)
    return where(
        np.isin(np.arange(len(trace)), rows[wrong]),
        lambda row: f"RTTVAR is {taken['rttvar'][sample[row]]} us; by its RTTs it is {wanted[sample[row]]}",
    )


def _rttvar(trace: Trace, rows: Ints) -> Ints:
    """Linux's mdev / 4 with the RTT that each of these rows measures, in us; of those above _MOST any."""
    result, first, count, srtt, mdev = np.zeros(len(rows), np.int64), -1, 0, 0, 0
    rtts = trace.board.samples[rows] // 1000
    for place, (rtt, begins) in enumerate(zip(rtts.tolist(), trace.first[rows].tolist(), strict=True)):
        if begins != first:
            first, count, srtt, mdev = begins, 0, rtt << 3, rtt << 1
        elif count < _MOST:
            change = rtt - (srtt >> 3)
            srtt += change
            more = abs(change) - (mdev >> 2)
            mdev += more >> 3 if change < 0 < more else more
        count += 1
        result[place] = mdev >> 2
    return result
