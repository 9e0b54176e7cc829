# SPDX-License-Identifier: Apache-2.0
"""The memory that the kernels of a lab share: who can affect whom, and how soon."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.lab import shared_time
from testctl.lab.shared_time import NEVER, Cut
from testctl.plan import load_plan
from testctl.testbeds.point_spec import kernels_of, on_kernel, parts_of
from testctl_agent.spec.errors import TestbedError

PLAN = """
topology: {topology}
flows: {{bulk: {flow}}}
tuples:
  - [bulk, duration, 100ms]
  - {tuples}
"""


def point(*tuples: str, topology: str = "pair", flow: str = "sender -> receiver"):
    (only,) = load_plan(PLAN.format(topology=topology, flow=flow, tuples="\n  - ".join(tuples)).encode()).points
    return only


def test_hosts_share_a_kernel_by_its_name_and_their_partition() -> None:
    assert parts_of(point("[hosts, kernel, '6.1']")) == ()
    mixed = point("[receiver, kernel, '6.1']", "[switch, delay, 1ms]")
    assert [(part.kernel, part.entities) for part in parts_of(mixed)] == [
        ("6.12", ("sender", "switch")),
        ("6.1", ("receiver",)),
    ]
    assert kernels_of(mixed) == ("6.12", "6.1")
    alone = point("[all, partition, own]", "[switch, delay, 1ms]")
    assert [part.entities for part in parts_of(alone)] == [("sender",), ("receiver",), ("switch",)]
    assert kernels_of(alone) == ("6.12",)
    halves = point("[sender, partition, west]", "[switch, partition, west]", "[switch, delay, 1ms]")
    assert [part.entities for part in parts_of(halves)] == [("sender", "switch"), ("receiver",)]
    assert parts_of(point("[all, partition, shared]")) == parts_of(point("[all, partition, west]")) == ()


def test_hosts_of_background_traffic_are_with_their_switch() -> None:
    loaded = point(
        "[all, partition, own]", "[switch, delay, 1ms]", "[switch, rate, 100mbit]", "[sender, kernel, '6.12']",
        "[switch:receiver, background, 50% 20kB]", "[receiver, kernel, '6.1']",
    )  # fmt: skip
    assert [(part.kernel, part.entities) for part in parts_of(loaded)] == [
        ("6.12", ("sender",)), ("6.1", ("receiver",)), ("6.12", ("bg1", "switch")),
    ]  # fmt: skip
    assert loaded.settings["bg1"]["kernel"] == "6.12"


def test_a_kernel_is_asked_for_what_its_own_hosts_set_alone() -> None:
    mixed = point(
        "[sender, kernel, '6.12']", "[receiver, kernel, '6.1']", "[switch, delay, 1ms]", "[sender, cc, bbr]",
        "[receiver, tcp_sack, 0]",
    )  # fmt: skip
    (old,), (new,) = on_kernel([mixed], "6.1"), on_kernel([mixed], "6.12")
    assert old.settings.keys() == {"receiver"}
    assert new.settings.keys() == {"sender", "switch", "switch:sender", "switch:receiver"}
    assert not on_kernel([mixed], "7.3")


def test_a_switchs_port_is_ahead_by_its_least_delay_and_a_host_is_not() -> None:
    changing = point("[receiver, partition, own]", "[switch:receiver, delay, '5ms; 2ms 1ms; 4ms 7ms']")
    (cut,) = shared_time.cuts(changing, parts_of(changing))
    assert (cut.ends, cut.parts, cut.ahead) == (("switch", "receiver"), (0, 1), (10**6, 0))


def test_a_way_around_without_a_delay_is_refused_by_its_links() -> None:
    at_once = point("[receiver, partition, own]", "[switch:sender, delay, 1ms]")
    with pytest.raises(TestbedError, match=r"got none from switch to receiver, receiver to switch .*delay"):
        shared_time.cuts(at_once, parts_of(at_once))


def test_one_delay_on_a_way_around_is_enough() -> None:
    two = point(
        "[all, partition, own]", "[left-right, delay, 1ms]", "[left:sender, delay, 1us]",
        "[right:receiver, delay, 1us]", topology="dumbbell",
    )  # fmt: skip
    assert len(shared_time.cuts(two, parts_of(two))) == 3


@given(
    st.integers(2, 6).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(
                st.tuples(
                    st.integers(0, count - 1), st.integers(0, count - 1), st.integers(0, 50), st.integers(0, 50)
                ).filter(lambda link: link[0] != link[1]),
                max_size=10,
            ),
        )
    )
)
def test_a_distance_is_that_of_the_shortest_way(network: tuple[int, list[tuple[int, int, int, int]]]) -> None:
    count, links = network
    found = [Cut(0, ("", ""), (one, other), (there, back)) for one, other, there, back in links]
    least = {(one, one): 0 for one in range(count)}
    for _ in range(count):  # Bellman and Ford's, where the code has Floyd and Warshall's
        for one, other, there, back in links:
            for start in range(count):
                for a, b, ns in ((one, other, there), (other, one, back)):
                    if (start, a) in least:
                        least[start, b] = min(least.get((start, b), NEVER), least[start, a] + ns)
    assert shared_time.distances(count, found) == [
        [least.get((one, other), NEVER) for other in range(count)] for one in range(count)
    ]


def test_no_space_for_what_they_share_is_an_error_that_says_how_much() -> None:
    found = [Cut(0, ("a", "b"), (0, 1), (5, 0))]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with (
            pytest.raises(TestbedError, match=r"want [0-9]+ kB of memory for what 2 kernels of a lab share; "),
            shared_time.shared_memory(2, found, 2),
        ):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_more_kernels_than_a_lab_can_have_are_refused() -> None:
    crowd = point("[all, partition, own]", "[switch, delay, 1ms]", topology="{star: {hosts: 64}}", flow="h1 -> h2")
    with pytest.raises(TestbedError, match="want at most 64; got 65"):
        shared_time.cuts(crowd, parts_of(crowd))
