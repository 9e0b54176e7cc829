# SPDX-License-Identifier: Apache-2.0
"""Flows of generator command: what a plan has to give, and where it can run."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.plan import Plan, load_plan
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.netns import NetnsTestbed
from testctl.testbeds.point_spec import LOCAL_PORTS, spec_of
from testctl_agent.spec.errors import PlanError

PLAN = """
topology: {star: {hosts: 3}}
flows: {fetch: h1 -> h3, other: h2 -> h3}
tuples:
  - [fetch, generator, command]
  - [fetch, client, "curl http://{address}:{server_port}/"]
  - [fetch, server, "python3 -m http.server {server_port}"]
"""


def plan(more: str = "", without: str = "-", **options: str) -> Plan:
    text = "".join(f"{line}\n" for line in PLAN.splitlines() if f"[fetch, {without}," not in line)
    return load_plan(f"{text}{more}".encode(), **options)  # type: ignore[arg-type]


def test_the_local_ports_of_the_client_s_host_are_the_flow_s() -> None:
    spec = spec_of(plan("  - [fetch, parallel, 4]\n").points[0])
    fetch = spec.flows[0]
    assert spec.state["h1"][LOCAL_PORTS] == f"{fetch.client_port} {fetch.client_port + 3}"
    assert LOCAL_PORTS not in spec.state.get("h2", {})
    assert fetch.options["client"] == "curl http://{address}:{server_port}/"


@pytest.mark.parametrize(
    ("more", "without", "words"),
    [
        ("", "client", "<plan>:5:24: flow fetch, generator command: want a tuple [fetch, client, 'COMMAND …']"),
        ("", "server", "want a tuple [fetch, server, 'COMMAND …']; got none"),
        ("", "generator", "flow fetch, client: want [fetch, generator, command] with it"),
        ("  - [fetch, bytes, 1MB]\n", "-", "flow fetch, bytes: a command has only client, duration, family, generator"),
        ("  - [fetch, cc, reno]\n", "-", "flow fetch, cc: a command has only"),
        ("  - [other, client, 'true']\n", "-", "flow other, client: want [other, generator, command] with it"),
    ],
)  # fmt: skip
def test_what_is_refused(more: str, without: str, words: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan(more, without)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("  - [other, generator, iperf3]\n  - [other, duration, 500ms]\n",
         "<plan>:9:23: flow other, generator iperf3: duration: want whole seconds; got 500000000 ns"),
        ("  - [other, generator, iperf3]\n  - [other, verify, on]\n",
         "<plan>:9:21: flow other, generator iperf3: verify: it does not check content"),
        ("  - [other, write_size, 1GB]\n  - [other, parallel, 2]\n",
         "<plan>:8:25: flow other, generator tgen: write_size: want at most 1073741824 bytes for all 2 connections"),
    ],
)  # fmt: skip
def test_what_a_generator_can_not_honour_is_refused_before_the_run(more: str, words: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan(more)
    assert words in str(refused.value)


def test_one_such_flow_from_a_host() -> None:
    text = PLAN.replace("other: h2", "other: h1").replace("[fetch,", "[flows,")
    with pytest.raises(PlanError, match="want one such flow from host h1, whose local ports are the flow's; got also"):
        load_plan(text.encode())


def test_a_rack_runs_none() -> None:
    with pytest.raises(PlanError) as refused:
        plan(testbed="inventory/rack-example")
    assert "an agent on a rack runs no commands" in str(refused.value) or "testbed" in str(refused.value)
    assert plan(testbed="netns").points


def test_a_default_is_no_request() -> None:
    assert plan("  - [fetch, rate, none]\n").points


@pytest.mark.parametrize("testbed", [LabTestbed({}, "code"), NetnsTestbed("code")])
def test_a_testbed_runs_none_unless_it_may(testbed: LabTestbed | NetnsTestbed, tmp_path: Path) -> None:
    """Also for a point of a run, which may be another person's."""
    with pytest.raises(PlanError, match=r"want --commands, if they may:\n  point .*, fetch, client: curl"):
        testbed.run(plan().points[0], tmp_path)
