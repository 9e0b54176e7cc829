# SPDX-License-Identifier: Apache-2.0
"""Figures of a window: every port and flow is in them, and bins sum to the bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from testctl.curves import Window, figure
from testctl.metrics.core.view import view
from testctl.records import Records, load_raw

from controller.tests.support.synthetic import bulk, write_point
from controller.tests.support.synthetic_telemetry import passage, write_telemetry

LINKS = [["sender", "switch"], ["switch", "receiver"]]
COUNT = 500


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """One flow through a switch, as telemetry has it."""
    where = tmp_path_factory.mktemp("switched")
    captures = bulk(COUNT, rate_bps=100e6)
    write_point(where, captures)
    point = json.loads((where / "point.json").read_text()) | {"topology": {"switches": ["switch"], "links": LINKS}}
    (where / "point.json").write_text(json.dumps(point))
    queue = np.arange(len(captures["sender"]["time_ns"]))
    write_telemetry(where, passage(captures["sender"], latency_ns=5_000_000, queue_bytes=queue))
    return load_raw(where)


def test_a_port_that_two_flows_share_is_one_line_of_both(switched: Records) -> None:
    packets = switched.packets.to_pylist()
    (flow,) = switched.point.flows
    point = replace(switched.point, flows=(flow, replace(flow, name="other")))
    both = Records(switched.packets, switched.tcp_info, {}, switched.outcome, point)
    codes = [row["time_ns"] // 1_000_000 % 2 for row in packets]
    index = both.packets.schema.get_field_index("flow")
    names = switched.packets["flow"].combine_chunks()
    renamed = type(names).from_arrays(np.array(codes, names.indices.to_numpy().dtype), [flow.name, "other"])
    both.packets = both.packets.set_column(index, both.packets.schema.field(index), renamed.cast(names.type))
    end = packets[-1]["time_ns"]
    one, two = (figure(records, "queue", ("bulk", 0), Window(0, end, 600)) for records in (switched, both))
    assert [line["name"] for line in two["lines"]] == [line["name"] for line in one["lines"]]
    assert two["lines"][0]["rows"] >= one["lines"][0]["rows"] >= COUNT


@pytest.mark.parametrize("width", [1_000, 100_000, 10_000_000, 7_654_321])
def test_bins_of_a_width_that_is_asked_for_sum_to_the_bytes(switched: Records, width: int) -> None:
    seen = view(switched, "bulk").at_sink
    end = int(seen["time_ns"][-1]) + 1
    data = figure(switched, "throughput", ("bulk", 0), Window(0, end, 600), width)
    (line,) = data["lines"]
    assert data["bucket_ns"] == data["fine_ns"] == width
    if "t0" in line:
        assert sum(line["y"]) * width / 8e9 == pytest.approx(int(seen["wire_bytes"].sum()), rel=1e-6)
    else:  # more bins than a screen can show: of each bucket the first, least, greatest and last
        assert len(line["y"]) <= 3000 + 4
        assert max(line["y"]) == pytest.approx(1514 * 8e9 / width)
