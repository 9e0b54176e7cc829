# SPDX-License-Identifier: Apache-2.0
"""A sample of a workload by a second program: iperf3 moves the same bytes from the same times on.

iperf3 opens its data connection when its server has answered on another one, and sends a cookie of 37 bytes first, so
its transfer is timed from the departure of the data behind that; tgen's from when its connection is open.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.execution.point import measure
from testctl.metrics import completions
from testctl.metrics.core.completions import requests_of
from testctl.metrics.core.view import view
from testctl.plan import load_plan
from testctl.records import Records
from testctl.testbeds.lab import LabTestbed

pytestmark = pytest.mark.lab

WRITE = 8192
COOKIE = 37
RTT_NS = 100_000
SIZES = "8192B:0 8192B:0.3 65536B:0.3 65536B:0.6 262144B:0.6 262144B:0.9 1048576B:0.9 1048576B:1"
COUNT = 12
NETWORK = """
  - [hosts, cc, cubic]
  - [hosts, tcp_info, off]
  - [switch:receiver, rate, 1gbit]
  - [switch:receiver, buffer, 1MB]
  - [switch, delay, 50us]
"""


def records_of(text: str, where: Path) -> Records:
    (point,) = load_plan(text, metrics={}).points
    result = measure(LabTestbed.for_points([point]), point, where, keep_captures=False)
    assert (result.verdict, result.reason) == ("pass", "")
    assert result.records is not None
    return result.records


def by_iperf3(records: Records, flow: str) -> int:
    """ns from the departure of the first data behind the cookie to the last byte's arrival."""
    seen = view(records, flow)
    begins = seen.sent["time_ns"][seen.sent["seq"] >= COOKIE]
    return int(seen.arrived["time_ns"][-1] - begins[0])


def test_iperf3_takes_as_long_for_a_sample_of_requests(tmp_path: Path) -> None:
    """A load of 0.5, so that transfers meet each other: each within a tenth, or a quarter of a millisecond."""
    head = f"topology: pair\nflows: {{web: sender -> receiver}}\ntuples:{NETWORK}"
    asked = f"  - [web, requests, {COUNT}]\n  - [web, load, 0.5]\n  - [web, sizes, '{SIZES}']\n"
    records = records_of(head + asked, tmp_path / "tgen")
    columns, found = requests_of(records, "web"), completions(records, "web")
    assert columns is not None
    assert found is not None
    tgen = found.took_ns - RTT_NS
    names = [f"f{number}" for number in range(COUNT)]
    flows = ", ".join(f"{name}: sender -> receiver" for name in names)
    tuples = [
        f"  - [{name}, start, {int(due)}ns]\n  - [{name}, bytes, {int(up)}B]\n"
        for name, due, up in zip(names, columns["due_ns"] - columns["due_ns"][0], columns["up"], strict=True)
    ]
    more = f"  - [flows, generator, iperf3]\n  - [flows, write_size, {WRITE}B]\n"
    records = records_of(f"topology: pair\nflows: {{{flows}}}\ntuples:{NETWORK}{more}{''.join(tuples)}", tmp_path / "b")
    iperf3 = np.array([by_iperf3(records, name) for name in names])
    apart = np.abs(iperf3 - tgen)
    print(np.stack([columns["up"], tgen, iperf3]).T)
    assert (apart < np.maximum(0.1 * tgen, 250_000)).all()
    assert np.median(apart / tgen) < 0.05
