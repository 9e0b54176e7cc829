# SPDX-License-Identifier: Apache-2.0
"""What a capture is taken to show is what the kernel counted, at points made to tell timers, probes and ACKs apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from testctl.results import RunPoint

from tests.plan_runs import run_of

pytestmark = pytest.mark.lab

SAME = {
    "retransmission_timeouts": ("kernel_timeouts",),
    "loss_probes": ("kernel_loss_probes",),
    "recoveries": ("kernel_sack_recovery", "kernel_reno_recovery"),
    "recovery_timeouts": ("kernel_sack_recovery_fail", "kernel_reno_recovery_fail"),
}
HEAD = """
topology: pair
flows: {{bulk: sender -> receiver}}
groups: {{ends: [sender, receiver]}}
tuples:
  - [ends, kernel, "{}"]
  - [switch:receiver, rate, {}]
"""
PLANS = {
    "a standing queue behind a short way, and losses": """
  - [switch:receiver, buffer, [100kB, 1MB]]
  - [switch, delay, 50us]
  - [all, mtu, [1500, 9000]]
  - [switch, fate, [none, "lose 1e-2 of bulk seed 1"]]
  - [bulk, pattern, [greedy, "on-off 100ms/50ms"]]
  - [bulk, duration, 1s]
design: {cover: 2}
""",
    "the first ten lost, and SACK that lets packets go long after the last progress": """
  - [switch, delay, 50ms]
  - [ends, tcp_sack, [1, 0]]
  - [switch, fate, ["drop data 1-10 of bulk, first", "drop data 5-60 of bulk, first"]]
  - [bulk, bytes, 100kB]
""",
    "packets too large for a link": """
  - [switch:receiver, largest, 1400B icmp]
  - [switch, delay, 5ms]
  - [bulk, bytes, 500kB]
""",
    "a link that is down for a while, for SYNs and for data": """
  - [switch, delay, 5ms]
  - [switch:receiver, down, [0s-2500ms, 100ms-1s]]
  - [bulk, bytes, 500kB]
""",
    "a window that is closed for a while, and probes into it": """
  - [switch, delay, 5ms]
  - [bulk, read_pause, [500ms-2s, none]]
  - [bulk, receive_buffer, [100kB, 30kB]]
  - [bulk, duration, 3s]
""",
    "a probe that leaves when the first packet's timer would run out": """
  - [switch, delay, 10ms]
  - [ends, tcp_timestamps, 0]
  - [ends, cc, [reno, westwood]]
  - [ends, tcp_events, [off, on]]
  - [switch:receiver, down, 500ms-900ms]
  - [bulk, duration, 2s]
""",
    "a window that the receiver takes back, and retransmissions that probe it": """
  - [switch, delay, 10ms]
  - [ends, tcp_events, [off, on]]
  - [bulk, read_rate, 2mbit]
  - [bulk, receive_buffer, [none, 64kB]]
  - [bulk, receive_buffer_later, 40kB at 1s]
  - [bulk, duration, 3s]
# 6.1 drops what it has SACKed (reneging), and what is retransmitted for it:
allow:
  - {rule: prr-bound, reason: what RACK's timer declares lost is sent again as if PRR had allowed it}
  - {rule: reduction-once, reason: "HyStart ends slow start in recovery, where PRR's window is below ssthresh"}
""",
}


QUICK = (
    "the first ten lost, and SACK that lets packets go long after the last progress",
    "packets too large for a link",
    "a window that is closed for a while, and probes into it",
    "requests that wait for an ACK of the one before",
)


def names(plans: dict[str, str]) -> list[Any]:
    """One of each kind of timer, probe and limit in `make test`, all in `make test-all`."""
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in plans]


@pytest.mark.parametrize("name", names(PLANS))
def test_values_of_captures_are_the_kernels(tmp_path: Path, release: str, name: str) -> None:
    points = points_of(tmp_path, release, PLANS[name])
    assert [wrong for point in points for wrong in unlike(point)] == []


def points_of(where: Path, release: str, tuples: str, rate: str = "10mbit") -> Sequence[RunPoint]:
    """All points of a plan, which pass."""
    return run_of(where, HEAD.lstrip().format(release, rate) + tuples.lstrip("\n")).points


def unlike(point: RunPoint) -> list[str]:
    """Values that are not the kernel's; where a receiver dropped what it had SACKed they may be unknown."""
    values = point.metrics["bulk"]
    reneged = bool(values["kernel_sack_reneging"])
    return [
        f"{point.id}: {name} {values[name]}, {counters} {[values[counter] for counter in counters]}"
        for name, counters in SAME.items()
        if values[name] != sum(values[counter] or 0 for counter in counters)  # type: ignore[misc]
        if not (reneged and values[name] is None)
    ]


INFERRED = {
    "a probe that the capture takes for a timeout": """
  - [bulk, bytes, 14480B]
  - [bulk, family, 6]
  - [bulk, reverse, on]
  - [switch, delay, 5ms]
  - [switch:receiver, down, 18ms-300ms]
  - [switch:sender, down, "30ms-60ms; 250ms-400ms"]
  - [ends, tcp_events, [off, on]]
""",
    "requests that wait for an ACK of the one before": """
  - [bulk, requests, 8]
  - [bulk, every, 60ms]
  - [bulk, sizes, 1kB]
  - [bulk, connections, 1]
  - [switch, delay, 2ms]
  - [switch, fate, drop data 5 of bulk]
  - [ends, tcp_events, [off, on]]
  - [ends, tcp_info, [10ms, off]]
""",
    "a FIN that leaves again": """
  - [bulk, bytes, 14480B]
  - [bulk, parallel, 2]
  - [switch, delay, 5ms]
  - [switch:receiver, down, [21ms-45ms, 20500us-800ms]]
  - [switch:sender, down, [none, 21ms-300ms]]
  - [ends, tcp_events, [off, on]]
""",
}


@pytest.mark.parametrize("name", names(INFERRED))
def test_what_rests_on_a_wrong_inference_is_not_known(tmp_path: Path, release: str, name: str) -> None:
    """Causes of stalls and lengths of timeouts, also where the trace has the right number of timers."""
    for point in points_of(tmp_path, release, INFERRED[name], "20mbit"):
        values = point.metrics["bulk"]
        for value, counter in (
            ("retransmission_timeouts", "kernel_timeouts"),
            ("loss_probes", "kernel_loss_probes"),
            ("stall_rto_count", "kernel_timeouts"),
            ("stall_tlp_count", "kernel_loss_probes"),
        ):
            known, counted = values[value], values[counter]
            assert known is None or float(known) <= float(counted or 0), f"{point.id}: {value} {known}, {counted}"
        if point.point["settings"]["sender"]["tcp_events"]:
            assert values["retransmission_timeouts"] == values["kernel_timeouts"], point.id
        timers, length = values["retransmission_timeouts"], values["timeout_length_max_ms"]
        assert length is None or timers, point.id
        assert length is None or name != "a FIN that leaves again", point.id
