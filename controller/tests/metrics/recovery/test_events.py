# SPDX-License-Identifier: Apache-2.0
"""TCP's internals by a capture: the table that a kernel's trace has too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from testctl.metrics.core.view import view
from testctl.metrics.recovery import flow_recoveries, tcp_events
from testctl.records import Records, load_raw
from testctl.records.schema import TCP_EVENT_NAMES, TCP_EVENTS

from controller.tests.support.synthetic import Conversation
from controller.tests.support.synthetic_recovery import MSS, Sender

FIXTURES = Path(__file__).parents[1] / "fixtures"
Load = Callable[[Conversation], Records]


def rows(records: Records) -> list[dict[str, Any]]:
    table = tcp_events(records, "bulk")
    assert table.schema == TCP_EVENTS
    found: list[dict[str, Any]] = table.to_pylist()
    assert all(row["event"] in TCP_EVENT_NAMES and row["source"] == "capture" for row in found)
    return found


def test_one_loss_event_by_event(load: Load) -> None:
    found = rows(load(Sender("rfc6675", 20, 60, [0]).run().talk))
    assert [row["event"] for row in found[:21]] == ["send"] * 20 + ["ack"]
    assert [row["cwnd"] for row in found[:20]] == list(range(1, 21))
    # The third duplicate ACK: 22 outstanding, 3 SACKed, 1 lost; then its retransmission is in the pipe.
    third, again = found[24:26]
    assert (third["event"], third["pipe"], third["cwnd"], third["delivered"], third["state"]) == ("ack", 18, -1, 4, 1)
    assert (again["event"], again["pipe"], again["cwnd"], again["delivered"], again["state"]) == (
        *("retransmit", 19, 19, 4),
        3,
    )
    assert (again["snd_una"], again["snd_nxt"], again["ssthresh"]) == (0, 22 * MSS, -1)
    last = found[-1]
    assert (last["snd_una"], last["snd_nxt"], last["pipe"], last["delivered"]) == (60 * MSS, 60 * MSS, 0, 61)
    assert last["state"] == 0


def test_srtt_is_of_rfc_6298(load: Load) -> None:
    talk = Conversation(delay_us=500)
    for n, rtt_us in enumerate((1000, 1800, 1000)):
        talk.data(10_000 * (n + 1), n * MSS, MSS)
        talk.ack(10_000 * (n + 1) + rtt_us - 500, (n + 1) * MSS)
    found = [row["srtt_us"] for row in rows(load(talk))]
    assert found == [-1, 1000, 1000, 1100, 1100, 1088]  # 1100 - 100 / 8 = 1087.5


def test_what_a_capture_does_not_show_is_unknown(load: Load) -> None:
    talk = Sender("prr", 20, 60, [0]).run().talk
    for where in talk.seen:
        talk.seen[where] = talk.seen[where][30:]
    found = rows(load(talk))
    assert {row["delivered"] for row in found} == {-1}
    assert (found[0]["pipe"], found[0]["cwnd"], found[0]["state"]) == (-1, -1, -1)
    assert found[-1]["pipe"] == 0


def test_a_real_kernel_says_the_same() -> None:
    """Samples of tcp_info in the midst of recoveries, beside the capture: pipe to two packets, delivered exactly."""
    records = load_raw(FIXTURES / "loss")
    table = tcp_events(records, "bulk")
    info = view(records, "bulk").info
    last = np.searchsorted(table["time_ns"].to_numpy(), info["time_ns"], side="right") - 1
    known = (last >= 0) & (info["state"] == 1)
    assert known.sum() >= 3
    pipe, delivered, state = (table[name].to_numpy()[last[known]] for name in ("pipe", "delivered", "state"))
    in_flight = (info["unacked"] - info["sacked"] - info["lost"] + info["retrans"])[known]
    assert np.abs(pipe - in_flight).max() <= 2
    assert delivered.tolist() == info["delivered"][known].tolist()
    assert state.tolist() == info["ca_state"][known].tolist()
    fast = flow_recoveries(records, "bulk")
    assert len(fast) == 7
    counted = records.snmp("sender")["TcpExt.TCPFastRetrans"]
    assert sum(recovery.retransmissions for recovery in fast) == counted
