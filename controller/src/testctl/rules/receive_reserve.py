# SPDX-License-Identifier: Apache-2.0
"""The first window leaves memory for a segment."""

from __future__ import annotations

import numpy as np

from testctl.rules.core.sender import kernel, sysctl
from testctl.rules.core.spec import Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace
from testctl.rules.core.windows import samples

SPEC = RuleSpec(
    name="receive-reserve",
    must="Before data arrives a receiver counts on half of its buffer, less a segment.",
    source="Linux, tcp_init_buffer_space()",
    level="Linux",
    needs=("start",),
    quote="Force reservation of one segment.",
    linux="Judged are samples of tcp_info (rcv_ssthresh) with a buffer that the kernel tunes. Before 6.6 "
    "tcp_adv_win_scale says what part of it counts.",
)
_BUFFER = "4096 131072 6291456"
"""Linux's net.ipv4.tcp_rmem, bytes."""


def check(trace: Trace) -> Found:
    if any(trace.option(name, "none") not in ("none", None) for name in ("receive_buffer", "receive_buffer_later")):
        return undecided("the application set its receive buffer")
    if not sysctl(trace, "tcp_app_win", 31):
        return undecided("nothing is reserved (net.ipv4.tcp_app_win is 0)")
    size = int(str(trace.settings.get("net.ipv4.tcp_rmem", _BUFFER)).split()[1])
    scale = sysctl(trace, "tcp_adv_win_scale", 1) if kernel(trace) < (6, 6) else 1
    space = size - (size >> scale) if scale > 0 else size >> -scale
    taken = samples(trace, "rcv_ssthresh", "advmss")
    rows, counts = taken["row"], taken["rcv_ssthresh"]
    came = ~trace.out & trace.data
    empty = ~came[rows] & (trace.latest(came)[rows] < 0)
    wrong = np.flatnonzero(empty & (counts > np.maximum(space - taken["advmss"], 2 * taken["advmss"])))
    sample = trace.sparse(rows[wrong], wrong)
    return where(
        np.isin(np.arange(len(trace)), rows[wrong]),
        lambda row: f"counts on {counts[sample[row]]} bytes of a buffer of {size}",
    )
