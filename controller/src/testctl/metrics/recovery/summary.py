# SPDX-License-Identifier: Apache-2.0
"""Fast recoveries of a flow in numbers: RFC 6937's and RFC 6675's terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testctl.metrics.core.available import of_flow
from testctl.metrics.core.spec import NAN, Better, MetricInfo, MetricSpec, Number
from testctl.metrics.recovery.measure import Recovery
from testctl.metrics.recovery.table import flow_recoveries
from testctl.records import Records

_LONGEST_TEXT = 2000
_SHARES = (1, 25, 50, 75, 99)
_EXCESS = "cwnd - ssthresh just before the end of each fast recovery that ACKs ended"

_VALUES: tuple[tuple[str, str, str, Better], ...] = (
    ("recoveries", "", "fast recoveries", "none"),
    (
        "recoveries_not_measured",
        "",
        "of these, those the capture does not show whole: it starts or ends in them or has a gap, or there is no SACK",
        "lower",
    ),
    ("recovery_timeouts", "", "fast recoveries that a retransmission timeout ended", "lower"),
    ("recovery_time_mean_ms", "ms", "mean time in fast recovery; NaN without any", "lower"),
    ("recovery_time_max_ms", "ms", "longest time in fast recovery; NaN without any", "lower"),
    (
        "recovery_sent_pattern",
        "",
        "what was sent on each ACK from the first duplicate one of the first fast recovery to before its end: "
        'N new, R retransmission, a number before it for several, "." nothing; none without any',
        "none",
    ),
    (
        "recovery_sent_first_round",
        "",
        "the same, on the ACKs of what was in flight when the first duplicate ACK came (RFC 6937, 3.1)",
        "none",
    ),
    ("recovery_segments_sent", "", "packets sent in fast recoveries", "none"),
    ("recovery_new_segments", "", "of these, packets of new data", "none"),
    (
        "recovery_first_new_ms",
        "ms",
        "time from the first fast recovery's entry to the first packet of new data; NaN when it sent none",
        "lower",
    ),
    ("recovery_cwnd_min", "packets", "least cwnd in fast recoveries, by tcp_info samples; NaN without any", "none"),
    ("recovery_burst_max", "packets", "most packets sent on one ACK of a fast recovery", "lower"),
    ("recovery_silence_longest_ms", "ms", "longest time in a fast recovery in which nothing was sent", "lower"),
    ("recovery_silent_acks_max", "", "most ACKs on end of a fast recovery on which nothing was sent", "lower"),
    ("lost_retransmissions", "", "retransmissions of fast recoveries that never arrived", "lower"),
    ("prr_out_ratio_max", "", "largest prr_out / prr_delivered of a fast recovery; with PRR at most 2", "lower"),
    ("prr_bound_broken", "", "fast recoveries with prr_out > 2 prr_delivered after some ACK", "lower"),
    (
        "recovery_excess_window_mean",
        "packets",
        f"{_EXCESS}: mean; NaN without any, or where one is not known: the trace has it, a sample only if taken then",
        "none",
    ),
    *((f"recovery_excess_window_p{n:02d}", "packets", f"{_EXCESS}: p{n:02d}", "none") for n in _SHARES),
    (
        "recovery_slow_start_share",
        "",
        "share of these recoveries with cwnd < ssthresh; NaN where it is not known",
        "lower",
    ),
)
_TEXTS = {"recovery_sent_pattern", "recovery_sent_first_round"}
_BY_WINDOW = "sender and tcp_events or sender and tcp_info"
_NEEDS = {"recovery_cwnd_min": "sender and tcp_info", "lost_retransmissions": "sender and receiver"}

SPEC = MetricSpec(
    name="recovery",
    help="fast recoveries, by the sender's capture",
    needs="sender",
    values=tuple(
        MetricInfo(
            *value,
            text=value[0] in _TEXTS,
            needs=_BY_WINDOW if "window_" in value[0] or "slow_start" in value[0] else _NEEDS.get(value[0], ""),
        )
        for value in _VALUES
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    if "sender" not in of_flow(records, flow):
        return {info.name: NAN for info in SPEC.values}
    fast = [r for r in flow_recoveries(records, flow) if r.fast]
    known = [r for r in fast if r.measured]
    times_ms = [r.length_ns / 1e6 for r in known if r.exited_by != "end"]
    ratios = [r.prr_out / r.prr_delivered for r in known if r.prr_delivered > 0 and r.exited_by != "end"]
    first = known[0] if known else None
    return {
        "recoveries": len(fast),
        "recoveries_not_measured": sum(bool(r.limit) for r in fast),
        "recovery_timeouts": sum(r.exited_by == "timeout" for r in known),
        "recovery_time_mean_ms": sum(times_ms) / len(times_ms) if times_ms else NAN,
        "recovery_time_max_ms": max(times_ms, default=NAN),
        "recovery_sent_pattern": _short(first.sent) if first else "none",
        "recovery_sent_first_round": _short(first.sent_first_round) if first else "none",
        "recovery_segments_sent": sum(r.segments_sent for r in known),
        "recovery_new_segments": sum(r.new_segments for r in known),
        "recovery_first_new_ms": first.first_new_ns / 1e6 if first and first.first_new_ns >= 0 else NAN,
        "recovery_cwnd_min": min((r.cwnd_min for r in known if r.cwnd_min >= 0), default=NAN),
        "recovery_burst_max": max((r.burst_max for r in known), default=NAN),
        "recovery_silence_longest_ms": max((r.silence_ns / 1e6 for r in known), default=NAN),
        "recovery_silent_acks_max": max((r.silent_acks for r in known), default=NAN),
        "lost_retransmissions": sum(r.resent if r.lost_retransmissions < 0 else r.lost_retransmissions for r in known),
        "prr_out_ratio_max": max(ratios, default=NAN),
        "prr_bound_broken": sum(r.prr_over > 0 for r in known),
        **_excess(known),
    }


def _excess(known: Sequence[Recovery]) -> dict[str, Number]:
    ended = [r for r in known if r.exited_by == "ack"]
    exact = [r.excess_window for r in ended if r.window_source in ("trace", "tcp_info")]
    excesses = [excess for excess in exact if excess is not None] if len(exact) == len(ended) else []
    values: dict[str, Number] = {
        "recovery_excess_window_mean": float(np.mean(excesses)) if excesses else NAN,
        "recovery_slow_start_share": sum(excess < 0 for excess in excesses) / len(excesses) if excesses else NAN,
    }
    for share in _SHARES:
        values[f"recovery_excess_window_p{share:02d}"] = float(np.percentile(excesses, share)) if excesses else NAN
    return values


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
