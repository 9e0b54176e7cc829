# SPDX-License-Identifier: Apache-2.0
"""Ports whose queue manages itself, from a plan to its records, in the lab's kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.lab.built import built
from testctl.metrics import drops, queue_marks, switch_wait
from testctl.records import Records, digest_of
from testctl.records.schema import FATES, codes_of

from tests import plan_runs

pytestmark = pytest.mark.lab

PLAN = """
about: two flows through a port with an AQM
topology: {{star: {{hosts: 3}}}}
flows: {{one: h1 -> h3, two: h2 -> h3}}
tuples:
  - [hosts, kernel, "{kernel}"]
  - [h1, cc, cubic]
  - [h2, cc, reno]
  - [hosts, tcp_ecn, {ecn}]
  - [hosts, capture, on]
  - [switch:h3, rate, 20mbit]
  - [switch:h3, framing, 24B]
  - [switch:h3, buffer, 60kB]
  - [switch:h3, aqm, "{aqm}"]
  - [switch, delay, 10ms]
  - [one, duration, 3s]
  - [two, duration, 3s]
"""


DRAWS = ("pie qdelay_ref 5ms ecn", "fq_pie qdelay_ref 5ms ecn", "red min 6kB max 30kB wq 6 ecn")
"""AQMs that draw at random for each packet."""
SEEDED = (*DRAWS, "codel", "fq_codel", "cake", "sfq")


def recorded(where: Path, kernel: Path, plan: str, **values: object) -> Records:
    return plan_runs.recorded(where, plan.format(kernel=kernel.parent.name.rpartition("-")[0], **values))


def test_fifo_is_the_model_of_the_port(tmp_path: Path, kernel: Path) -> None:
    """Every departure, depth and drop is the same, and so is every packet at the hosts."""
    model, queue = (recorded(tmp_path / aqm, kernel, PLAN, aqm=aqm, ecn=0) for aqm in ("none", "fifo"))
    assert model.packets.num_rows > 10**4
    assert drops.compute(model, "one")["drops_by_full_buffer"] > 0
    assert digest_of(model.packets, model.tcp_info) == digest_of(queue.packets, queue.tcp_info)


@pytest.mark.parametrize(
    "aqm",
    [
        "codel target 5ms interval 100ms",
        "pie qdelay_ref 5ms",
        pytest.param("fq_pie qdelay_ref 5ms", marks=pytest.mark.long),
        "cake rtt 20ms",
        "red min 6kB max 30kB wq 6",
        pytest.param("red min 6kB max 30kB wq 6 gentle", marks=pytest.mark.long),
        "policer rate 15mbit burst 20kB",
        "fq_codel",
        "dualpi2 target 5ms tupdate 5ms",
    ],
)
@pytest.mark.parametrize("ecn", [0, 1])
def test_the_telemetry_has_what_the_aqm_did(tmp_path: Path, kernel: Path, aqm: str, ecn: int) -> None:
    """Each packet's record says how it left, and their sums are the qdisc's counters."""
    marks = ecn and not aqm.startswith("policer")
    flag = " ecn" if marks and not aqm.startswith(("dualpi2", "cake")) else ""
    records = recorded(tmp_path / "run", kernel, PLAN, aqm=aqm + flag, ecn=ecn)
    codes, places = codes_of(records.packets, "where")
    here = (codes == places.index("switch")) & (records.packets["direction"].to_numpy() == 0)
    fate, queue, left = (records.packets[name].to_numpy()[here] for name in ("fate", "queue_bytes", "left_ns"))
    fates = {name: int((fate == number).sum()) for number, name in enumerate(FATES)}
    (row,) = (row for row in records.counters["switch"]["qdisc"] if row["kind"] == "testctl_port")
    assert (fates["queue_mark"], fates["aqm_drop"], fates["buffer_drop"]) == (
        row["extra"]["marked"], row["extra"]["dropped"], row["extra"]["full"],
    )  # fmt: skip
    assert fates["queue_mark" if marks else "aqm_drop"] > 0
    assert queue.min() >= 0
    assert queue.max() > 6000
    dropped = np.isin(fate, [FATES.index("aqm_drop"), FATES.index("buffer_drop")])
    assert (left[dropped] == -1).all()
    departures = np.sort(left[~dropped])
    assert departures[0] > 0
    assert np.diff(departures).min() >= (66 + 24) * 8 * 50, "one after the other, at 20 Mb/s"


@pytest.mark.long
@pytest.mark.parametrize("aqm", ["codel target 5ms interval 100ms", "pie qdelay_ref 5ms"])
@pytest.mark.parametrize("release", ["6.1", "7.3"])
def test_other_kernels_drops_are_seen(tmp_path: Path, release: str, aqm: str) -> None:
    """Since 7.1 or so a qdisc writes why it drops a packet into the packet's control block."""
    if (found := built(release)) is None:
        pytest.skip(f"the lab's kernel {release} is not built")
    records = recorded(tmp_path / "run", found.binary, PLAN, aqm=aqm, ecn=0)
    (row,) = (row for row in records.counters["switch"]["qdisc"] if row["kind"] == "testctl_port")
    counted = [drops.compute(records, flow)["drops_by_aqm"] for flow in ("one", "two")]
    assert sum(counted) == row["extra"]["dropped"] > 0


@pytest.mark.parametrize("aqm", [pytest.param(aqm, marks=pytest.mark.long if "fq_" in aqm else ()) for aqm in SEEDED])
def test_a_seed_gives_the_same_packets_each_time(tmp_path: Path, kernel: Path, aqm: str) -> None:
    """The setup, which takes another time in each run, decides nothing."""
    seeds = {"first": "", "again": ""} | ({"other": " seed 2"} if aqm in DRAWS else {})
    first, again, *other = (
        digest_of(records.packets, records.tcp_info)
        for name, seed in seeds.items()
        for records in [recorded(tmp_path / name, kernel, PLAN, aqm=f"{aqm}{seed}", ecn=1)]
    )
    assert first == again
    assert first not in other


ECT_1, SYN = 1, 2
L4S = """
about: a congestion control that sends ECT(1), beside one that does not, through the two queues of DualPI2
topology: {{dumbbell: {{senders: 2, receivers: 2}}}}
flows: {{scalable: sender1 -> receiver1, classic: sender2 -> receiver2}}
tuples:
  - [hosts, kernel, "{kernel}"]
  - [hosts, tcp_ecn, 1]
  - [scalable, cc, dctcp_ect1]
  - [classic, cc, cubic]
  - [flows, family, {family}]
  - [left:right, rate, 20mbit]
  - [left:right, buffer, 200kB]
  - [left:right, aqm, dualpi2 seed 1]
  - [switches, delay, 5ms]
  - [flows, duration, 3s]
"""


@pytest.mark.parametrize("family", [4, 6])
def test_ect_1_has_a_queue_of_its_own(tmp_path: Path, kernel: Path, family: int) -> None:
    """All data of dctcp_ect1 is ECT(1), that of CUBIC ECT(0); the first waits less, and both are marked."""
    records = recorded(tmp_path / "run", kernel, L4S, family=family)
    packets, codes, places = records.packets, *codes_of(records.packets, "where")
    flows, names = codes_of(records.packets, "flow")
    ecn, out, flags, length = (packets[name].to_numpy() for name in ("ecn", "out", "flags", "length"))
    for flow, host, fields in (("scalable", "sender1", {ECT_1}), ("classic", "sender2", {2})):
        sent = (codes == places.index(host)) & (flows == names.index(flow)) & out & (length > 0)
        assert sent.sum() > 500
        assert set(np.unique(ecn[sent])) == fields
        assert float(queue_marks.compute(records, flow)["queue_marks"]) > 0
    acks = (codes == places.index("receiver1")) & (flags & SYN == 0) & out & (length == 0)
    assert set(np.unique(ecn[acks])) == {ECT_1}, "as DCTCP, whose ACKs are ECN-capable"
    scalable, classic = (switch_wait.compute(records, flow) for flow in ("scalable", "classic"))
    assert scalable["switch_wait_where"] == classic["switch_wait_where"] == "left:right"
    assert 4 * float(scalable["switch_wait_p50_us"]) < float(classic["switch_wait_p50_us"])
