# SPDX-License-Identifier: Apache-2.0
"""Causes of stalls that a plan makes, each beside one that differs by a word: what the lab's TCP does of itself.

The cause that has no pair here, loss, and closer neighbours are in controller/tests/metrics/test_stalls.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.metrics.stalls import flow_stalls

from tests.plan_runs import measured, records_of

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, reno]
  - [hosts, gro, off]
  - [switch, delay, 1ms]
  - [switch:receiver, buffer, 50kB]
"""
FAST, SLOW = "[switch:receiver, rate, 100mbit]", "[switch:receiver, rate, 500kbit]"
BURST = '[bulk, pattern, "schedule 0s:43440B,900ms:14480B"]'
SMALL = ",".join(["0s:30kB", *(f"{50 * n}ms:1000B" for n in range(2, 30)), "1500ms:1000B,1502ms:1000B,1600ms:1000B"])
NAGLE = f'[bulk, pattern, "schedule {SMALL}"]'
TAIL, LAST_ACK = "data 29-30 of bulk", "acks 28 of bulk"
NO_PROBES = "[hosts, tcp_early_retrans, 0]"
THEN = ("application", "new_data")
"""Behind the burst."""


def fate(text: str) -> str:
    return f'[switch, fate, "{text}"]'


CASES = {
    "an application that pauses": ([FAST, "[bulk, pattern, on-off 100ms/50ms]"], {THEN}),
    "one that does not": ([FAST], set()),
    "a receiver that pauses": (
        [FAST, "[bulk, read_pause, 200ms-700ms]", '[receiver, tcp_rmem, "4096 65536 65536"]'], {("window", "ack")}
    ),
    "one whose buffer takes the pause": (
        [FAST, "[bulk, read_pause, 200ms-210ms]", '[receiver, tcp_rmem, "4096 1000000 1000000"]'], set()
    ),
    "a slow qdisc": ([FAST, "[sender, htb_rate, 500kbit]"], {("tokens", "new_data")}),
    "a slow link": ([SLOW], set()),
    "the tail is lost": ([FAST, BURST, fate(f"drop {TAIL}, first")], {("tlp", "tlp"), THEN}),
    "the tail is slow": ([FAST, BURST, fate(f"delay {TAIL} by 100ms, first")], {("path", "tlp"), THEN}),
    "the tail is lost, no probe": ([FAST, BURST, NO_PROBES, fate(f"drop {TAIL}, first")], {("rto", "rto"), THEN}),
    "the tail is slow, no probe": (
        [FAST, BURST, NO_PROBES, fate(f"delay {TAIL} by 300ms, first")], {("path", "rto"), THEN}
    ),
    "the last ACK is lost": ([FAST, BURST, fate(f"drop {LAST_ACK}")], {("tlp", "tlp"), THEN}),
    "the last ACK is slow": ([FAST, BURST, fate(f"delay {LAST_ACK} by 100ms")], {("path", "tlp"), THEN}),
    "Nagle waits for a delayed ACK": ([FAST, NAGLE, "[bulk, nodelay, off]"], {("delayed_ack", "ack"), THEN}),
    "no Nagle waits for it": ([FAST, NAGLE, "[bulk, nodelay, on]"], {THEN}),
}  # fmt: skip


@pytest.mark.lab
@pytest.mark.parametrize("case", CASES)
def test_what_a_plan_makes_is_the_cause(case: str, tmp_path: Path) -> None:
    tuples, wanted = CASES[case]
    ends = [] if any("schedule" in one for one in tuples) else ["[bulk, duration, 1s]"]
    result = measured(tmp_path / "point", PLAN + "".join(f"  - {one}\n" for one in [*tuples, *ends]))
    assert {(stall.cause, stall.ended_by) for stall in flow_stalls(records_of(result), "bulk")} == wanted
