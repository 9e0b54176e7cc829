# SPDX-License-Identifier: Apache-2.0
"""A tail that nobody acknowledges is probed."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sacks import in_use
from testctl.rules.core.sender import RTO_MIN_NS, TICK_NS, ms, sysctl
from testctl.rules.core.spec import Found, RuleSpec, undecided
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import CWR, OPEN, Events

SPEC = RuleSpec(
    name="tlp-missing",
    must="While nothing is SACKed or lost, something is sent two SRTTs after data was sent and nothing came; of a "
    "single segment, the time that an ACK may be delayed is added.",
    source="RFC 8985, 7.2",
    level="SHOULD",
    needs=("start", "order", "tcp_events"),
    only_if=("sack",),
    quote="The sender SHOULD start or restart a loss probe PTO timer after transmitting new data (that was not itself "
    "a loss probe) or upon receiving an ACK that cumulatively acknowledges new data",
    linux="Two ticks of the timer are added: tcp_schedule_loss_probe().",
)


def check(trace: Trace) -> Found:
    if sysctl(trace, "tcp_early_retrans", 3) not in (3, 4):
        return undecided("tail loss probes are off (net.ipv4.tcp_early_retrans)")
    events = Events(trace)
    if not len(events):
        return Found()
    time, srtt_ns = events["time_ns"], 1000 * events["srtt_us"]
    goes_on = np.append(events.follows[1:], False)
    silence = np.where(goes_on, np.append(time[1:], 0) - time, 0)
    delayed = np.where(events["pipe"] <= 1, max(RTO_MIN_NS, sysctl(trace, "tcp_rto_min_us", 0) * 1000), 0)
    pto = 2 * srtt_ns + delayed
    # It came by a timer, perhaps, which waits no longer than the RTO of the first segment (tcp_schedule_loss_probe()),
    # and which duplicate ACKs do not set anew.
    sets = events.before_each(events.last(~events.kind("ack") | (events["snd_una"] > events.before("snd_una"))))
    probe = events.follows & ~(events.same(sets) & (time - time[sets] < srtt_ns))
    due = (srtt_ns > 0) & (events["pipe"] > 0) & np.isin(events["state"], (OPEN, CWR)) & ~probe
    # One probe at a time: until what had been sent at the last one is acknowledged, and more if the probe was of that
    # (RFC 8985, 7.4.2).
    probes = probe & ~events.kind("ack") & (events.before("pipe") > 0)
    last = events.last(probes)
    ends = events["snd_nxt"] + events.kind("retransmit")
    due &= ~(probes[last] & events.same(last) & (events["snd_una"] < ends[last]))
    due &= np.isin(events["conn"], np.unique(trace["conn"][in_use(trace)]))
    return events.where(
        due & (silence > pto + pto // 8 + 5 * TICK_NS),
        lambda at: (
            f"nothing is sent for {ms(silence[at])} with {events['pipe'][at]} in flight; the PTO is {ms(pto[at])}"
        ),
    )
