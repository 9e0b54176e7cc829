# SPDX-License-Identifier: Apache-2.0
"""TCP's internals from the lab's kernel: they change no packet, and agree with what a capture tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from testctl.metrics.core.view import view
from testctl.metrics.recovery import flow_recoveries, tcp_events, traced_events
from testctl.records import Records, digest_of

from tests.plan_runs import run_of

pytestmark = pytest.mark.lab

PLAN = """
about: a flow that loses packets, with and without the trace
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, kernel, KERNEL]
  - [hosts, cc, cubic]
  - [hosts, tso, off]
  - [sender, tcp_events, [off, on]]
  - [switch, rate, 100mbit]
  - [switch:receiver, buffer, 60kB]
  - [switch, delay, 10ms]
  - [switch, fate, "drop data 40,300-302,1000 of bulk, first; drop bytes 2500kB-2501kB of bulk, first"]
  - [bulk, bytes, 4MB]
"""


@pytest.fixture(scope="module")
def points(release: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Records, Records]:
    """The records without and with the trace."""
    where = tmp_path_factory.mktemp("run")
    run = run_of(where, PLAN.replace("KERNEL", f'"{release}"'))
    found = [Records.load(point.path) for point in run.points]
    (without,) = (one for one in found if one.tcp_events is None)
    (traced,) = (one for one in found if one.tcp_events is not None)
    return without, traced


def test_not_a_packet_is_another(points: tuple[Records, Records]) -> None:
    without, traced = points
    assert digest_of(traced.packets, traced.tcp_info) == without.digest()
    assert traced.digest() != without.digest()


def rows(table: Any, event: str) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["event"] == event]


def test_every_transmission_is_there(points: tuple[Records, Records]) -> None:
    """Bytes and retransmissions are those of the capture; in order, nothing lost."""
    records = points[1]
    assert not [note for note in records.notes if "tcp_events" in note]
    traced, captured = traced_events(records, "bulk"), tcp_events(records, "bulk")
    assert traced["snd_nxt"].to_pylist()[-1] == captured["snd_nxt"].to_pylist()[-1]
    ends = [{row["snd_nxt"] for row in rows(table, "send")} for table in (traced, captured)]
    assert ends[0] <= ends[1]  # one segment that TCP handed down may be several packets
    assert len(rows(traced, "retransmit")) <= len(rows(captured, "retransmit"))
    assert [row["snd_una"] for row in rows(traced, "ack")] == sorted(row["snd_una"] for row in rows(traced, "ack"))
    pipe, prior = (np.array(traced[name].to_pylist()) for name in ("pipe", "prior_pipe"))
    assert (prior[1:] == pipe[:-1]).all()


def test_the_capture_tells_the_same(points: tuple[Records, Records]) -> None:
    """ACK by ACK: snd.una, snd.nxt and delivered exactly; the pipe to two packets.

    srtt to 2 us but for a while after a loss, where the kernel also samples what is SACKed: there to a tenth.
    """
    records = points[1]
    acks = rows(traced_events(records, "bulk"), "ack")[1:]  # the first is the SYN's
    seen = [row for row in rows(tcp_events(records, "bulk"), "ack") if row["snd_nxt"] > 0]
    assert 0 <= len(seen) - len(acks) <= 1  # that of its own FIN may find the socket gone
    seen = seen[: len(acks)]
    assert len(acks) > 500
    most = {"time_ns": 5_000, "snd_una": 0, "snd_nxt": 0, "delivered": 0, "pipe": 2, "srtt_us": 2_500}
    for name, limit in most.items():
        apart = np.array([ack[name] - row[name] for ack, row in zip(acks, seen, strict=True)])
        print(name, "apart", apart.min(), "to", apart.max(), "in", np.count_nonzero(apart), "of", len(apart))
        assert np.abs(apart).max() <= limit, name
    assert np.median(np.abs(apart)) <= 2
    states = {(ack["state"], row["state"]) for ack, row in zip(acks, seen, strict=True)}
    print("states, traced and captured:", sorted(states))


def test_the_end_of_recovery(points: tuple[Records, Records]) -> None:
    """cwnd and ssthresh just before each fast recovery's end are the trace's."""
    records = points[1]
    fast = [one for one in flow_recoveries(records, "bulk") if one.fast and one.exited_by == "ack"]
    assert len(fast) >= 3
    for one in fast:
        print(one.una, one.point, one.cwnd_exit, one.ssthresh, one.excess_window)
    assert {one.window_source for one in fast} == {"trace"}
    assert all(one.ssthresh >= 2 for one in fast)
    info = view(records, "bulk").info
    assert int(info["snd_cwnd"][-1]) > 0
