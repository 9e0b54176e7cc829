# SPDX-License-Identifier: Apache-2.0
"""What a plan implies of a flow's path, by hand."""

from __future__ import annotations

import json

import pytest
from testctl.core.path_facts import PathFacts, path_facts, path_rows
from testctl.plan import load_plan

TUPLES = {
    ("switch:receiver", "rate"): "20mbit",
    ("switch:sender", "rate"): "50mbit",
    ("switch", "delay"): "5ms",
    ("bulk", "bytes"): "1MB",
}


def facts(changes: dict[tuple[str, str], str]) -> PathFacts | None:
    tuples = [[*names, text] for names, text in (TUPLES | changes).items()]
    plan = {"about": "a path", "topology": "pair", "flows": {"bulk": "sender -> receiver"}, "tuples": tuples}
    (point,) = load_plan(json.dumps(plan).encode()).points
    return path_facts(point, point.flows[0])


def test_a_bottleneck_at_a_port() -> None:
    found = facts({("switch:receiver", "buffer"): "25kB"})
    assert found is not None
    assert found.base_rtt_ns == 10_000_000 + 66 * 8 * 50 + 66 * 8 * 20
    assert (found.bottleneck, found.rate_bps, found.buffer_bytes) == ("switch:receiver", 20e6, 25_000)
    assert found.bdp_bytes == pytest.approx(25_092, abs=1)
    assert found.buffer_bdp == pytest.approx(0.9963, abs=1e-4)


def test_of_a_reversed_flow_the_data_s_way_counts() -> None:
    found = facts({("bulk", "reverse"): "on"})
    assert found is not None
    assert (found.bottleneck, found.rate_bps, found.buffer_bytes, found.buffer_bdp) == (
        "switch:sender",
        50e6,
        None,
        None,
    )


def test_a_host_s_limiter() -> None:
    """It lets a single packet go at once, and has a buffer of its own."""
    found = facts({("sender", "htb_rate"): "1mbit"})
    assert found is not None
    assert (found.bottleneck, found.base_rtt_ns, found.buffer_bytes) == ("sender", 10_036_960, 1_000_000)


@pytest.mark.parametrize(
    "changes", [{("switch:receiver", "rate"): "20mbit; 1s 10mbit"}, {("switch", "delay"): "5ms; 1s 6ms"}]
)
def test_what_varies_has_none(changes: dict[tuple[str, str], str]) -> None:
    assert facts(changes) is None


def test_a_link_that_is_down_at_times_has_the_facts_of_its_rate() -> None:
    assert facts({("switch:receiver", "down"): "1s-1300ms"}) == facts({}) is not None
    assert facts({("switch", "down"): "1s-1300ms"}) == facts({})


def test_without_a_rate_there_is_no_bottleneck() -> None:
    assert facts({("switch:receiver", "rate"): "none", ("switch:sender", "rate"): "none"}) is None


def test_a_path_without_delay_has_no_product() -> None:
    """Of a host's limiter alone: a single packet takes no time."""
    found = facts({("switch:receiver", "rate"): "none", ("switch:sender", "rate"): "none", ("switch", "delay"): "0ms",
                   ("sender", "htb_rate"): "10mbit"})  # fmt: skip
    assert found is not None
    assert (found.base_rtt_ns, found.bdp_bytes, found.buffer_bdp) == (0, 0, None)
    json.dumps(found.to_json())


@pytest.mark.parametrize(
    ("buffers", "text"),
    [((50_000, None), "2 BDP … no limit"), ((None,), "no limit"), ((25_000, 50_000), "1 BDP … 2 BDP")],
)
def test_buffers_of_several_points(buffers: tuple[int | None, ...], text: str) -> None:
    several = [PathFacts(10_000_000, "switch:receiver", 20e6, size) for size in buffers]
    assert path_rows({"bulk": several})[0][-1] == text


def test_a_buffer_of_a_path_without_delay_is_in_bytes() -> None:
    assert path_rows({"bulk": [PathFacts(0, "sender", 1e7, 1_000_000)]})[0][-1] == "1 MB"
