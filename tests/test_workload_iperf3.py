# SPDX-License-Identifier: Apache-2.0
"""A sample of a workload by a second program: iperf3 moves the same bytes from the same times on.

iperf3 opens its data connection when its server has answered on another one, and sends a cookie of 37 bytes first, so
its transfer is timed from the departure of the data behind that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.metrics import completions
from testctl.metrics.core.completions import requests_of
from testctl.metrics.core.view import view
from testctl.records import Records

from tests.plan_runs import measured, records_of

pytestmark = pytest.mark.lab

WRITE = 8192
COOKIE = 37
RTT_NS = 100_000
LATE_NS = 20_000
"""Of applications: to be woken, and packets that leave before the first data."""
SIZES = "65536B:0 65536B:0.3 524288B:0.3 524288B:0.6 2097152B:0.6 2097152B:0.9 4194304B:0.9 4194304B:1"
COUNT = 8
NETWORK = """
  - [hosts, cc, cubic]
  - [hosts, tcp_info, off]
  - [switch:receiver, rate, 1gbit]
  - [switch:receiver, buffer, 1MB]
  - [switch, delay, 50us]
"""


def passed(text: str, where: Path) -> Records:
    result = measured(where, text)
    assert result.verdict == "pass", result.reason
    return records_of(result)


def moved_ns(records: Records, flow: str, conn: int, skipped: int, size: int) -> int:
    """ns from the departure of a connection's first byte behind `skipped` ones to the arrival of `size` more."""
    seen = view(records, flow)
    sent, arrived = seen.sent.of_conn(conn), seen.arrived.of_conn(conn)
    begins = sent["time_ns"][sent["seq"] >= skipped]
    there = np.maximum.accumulate(arrived["seq"] + arrived["length"]) >= skipped + size
    return int(arrived["time_ns"][there][0] - begins[0])


def test_iperf3_takes_as_long_for_a_sample_of_requests(tmp_path: Path) -> None:
    """One at a time.  iperf3 may end before its last bytes have left, so half of each is
    compared, within 2 %; what tgen's applications say of a whole one is what the captures have.
    """
    head = f"topology: pair\nflows: {{web: sender -> receiver}}\ntuples:{NETWORK}"
    asked = f"  - [web, requests, {COUNT}]\n  - [web, every, 50ms]\n  - [web, sizes, '{SIZES}']\n"
    records = passed(head + asked, tmp_path / "tgen")
    columns, found = requests_of(records, "web"), completions(records, "web")
    assert columns is not None
    assert found is not None
    sizes = columns["up"].tolist()
    whole = np.array([moved_ns(records, "web", conn, 0, size) for conn, size in enumerate(sizes)])
    assert np.abs(found.took_ns - RTT_NS - whole).max() < LATE_NS
    tgen = np.array([moved_ns(records, "web", conn, 0, size // 2) for conn, size in enumerate(sizes)])
    names = [f"f{number}" for number in range(COUNT)]
    flows = ", ".join(f"{name}: sender -> receiver" for name in names)
    tuples = [
        f"  - [{name}, start, {int(due)}ns]\n  - [{name}, bytes, {size}B]\n"
        for name, due, size in zip(names, columns["due_ns"] - columns["due_ns"][0], sizes, strict=True)
    ]
    more = f"  - [flows, generator, iperf3]\n  - [flows, write_size, {WRITE}B]\n"
    records = passed(f"topology: pair\nflows: {{{flows}}}\ntuples:{NETWORK}{more}{''.join(tuples)}", tmp_path / "b")
    iperf3 = np.array([moved_ns(records, name, 0, COOKIE, size // 2) for name, size in zip(names, sizes, strict=True)])
    print(np.stack([sizes, whole, tgen, iperf3]).T)
    assert (np.abs(iperf3 - tgen) < 0.02 * tgen).all()
