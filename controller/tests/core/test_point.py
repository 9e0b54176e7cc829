# SPDX-License-Identifier: Apache-2.0
"""Points and topologies as JSON, and back; JSON that is none of theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.core.point import PointSpec
from testctl.core.topology import Topology
from testctl.plan import load_plan
from testctl.testbeds.point_spec import spec_of

PLANS = Path(__file__).parents[3] / "plans"


@pytest.mark.parametrize("name", ["one_flow", "dctcp_htb", "fates"])
def test_a_point_is_the_same_from_json(name: str) -> None:
    for point in load_plan(PLANS / f"{name}.yaml").points[:3]:
        spec = replace(spec_of(point), kernel_log=True)
        again = PointSpec.from_json(json.loads(json.dumps(spec.to_json())))
        assert again == replace(spec, levels=())
        assert again.to_json() == spec.to_json()


def test_times_are_no_options() -> None:
    text = b"topology: pair\nflows: {b: sender -> receiver}\ntuples: [[b, start, 5ms], [b, duration, 1s]]\n"
    (flow,) = spec_of(load_plan(text).points[0]).flows
    assert (flow.start_ns, flow.duration_ns, flow.options["duration"]) == (5_000_000, 10**9, 10**9)
    assert "start" not in flow.options


FLOW = {"name": "b", "from": "s", "to": "r", "server_port": 1, "client_port": 2}
ODD_FLOW = FLOW | {"options": {"x": []}}


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        (5, "point: want an object; got 5"),
        ({"seed": "1"}, "point: want an integer of 64 bits at seed; got '1'"),
        ({"flows": {}}, "point: want a list at flows; got dict"),
        ({"flows": [{"name": "b"}]}, "point: want flows[0].from; it is not there"),
        ({"flows": [ODD_FLOW]}, "point: want an integer of 64 bits at flows[0].options.x; got list"),
        ({"tuples": [["a", "b"]]}, "point: want an entity, a parameter and a value a tuple; got ['a', 'b']"),
        ({"state": {"s": 5}}, "point: want an object at state.s; got 5"),
        ({"collect": {"s": {"capture": 5}}}, "point: want an object at collect.s.capture; got 5"),
        ({"topology": {"hosts": {"s": 5}}}, "topology: want a text at hosts.s; got 5"),
        ({"topology": {"links": [["a"]]}}, "topology: want two names a link; got a"),
    ],
)  # fmt: skip
def test_what_is_no_point_is_refused(raw: Any, want: str) -> None:
    with pytest.raises(ValueError, match="want") as error:
        PointSpec.from_json(raw)
    assert str(error.value) == want


def test_entities_that_nothing_links_have_no_path() -> None:
    tree = Topology(links=(("a", "left"), ("left", "right"), ("right", "b"), ("c", "left")))
    assert tree.path("a", "b") == ["a", "left", "right", "b"]
    assert tree.path("a", "nowhere") == []
    apart = Topology(hosts={"a": "10.0.0.1", "b": "10.0.0.2"}, switches=("s",), links=(("a", "s"),))
    assert apart.path("a", "s") == ["a", "s"]
    assert apart.path("a", "b") == []
    assert Topology().path("a", "b") == []
