# SPDX-License-Identifier: Apache-2.0
"""Large plans and topologies: read or refused with a bounded memory and time, whatever repeats in them."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.core import capacity
from testctl.plan import load_plan
from testctl.plan.cost import rows
from testctl.results import RunWriter, layout
from testctl_agent.spec import trace

pytestmark = pytest.mark.long

SIZE = 40 * 1024
"""Of one file, which may have six times that."""
MOST_BYTES, MOST_S = 1 << 30, 60
"""Of address space (a Python with the loader has 0.3 GB) and processor time."""
LOAD = """
import json, sys
from testctl.metrics import metric_names
from testctl.plan import load_plan
from testctl_agent.spec.errors import PlanError
for text, topology in json.load(sys.stdin):
    try:
        plan = load_plan(text.encode(), metrics=metric_names(), topology_text=topology or None)
        print(len(plan.points), "points")
    except PlanError as error:
        print("refused:", str(error)[:300].replace("\\n", " "))
"""

BED = """nodes: {h1: {kind: host}, h2: {kind: host}, a: {kind: switch, count: 124}, b: {kind: switch, count: 124}}
ecmp: true
links:
"""
NET = "nodes:\n  h: {kind: host, count: 100}\n  s: {kind: switch}\nlinks: [{each: [h, s]}]\n"
FLOW = "flows: {f: h1 -> h2}\ntuples: [[f, bytes, 1MB]]\n"
TUPLES = "topology: ./net.yaml\nflows: {f: h1 -> h2}\ntuples:\n  - [f, bytes, 1MB]\n"
PLAN = "topology: ./net.yaml\n" + FLOW
REPEATED: dict[str, tuple[str, str, str]] = {
    "the same mesh": (PLAN, BED, "  - mesh: [a, b]\n"),
    "links to itself": (PLAN, BED, "  - mesh: [a, a]\n"),
    "chains": (PLAN, BED, "  - chain: a\n"),
    "unknown links": (PLAN, BED, "  - {what: [c, d]}\n"),
    "unknown nodes": (PLAN, BED, "  - mesh: [c%d, d%d]\n"),
    "long lists": (PLAN, BED + "  - mesh: [", "a,"),
    "nodes": (PLAN, "links: [{each: [h, s]}]\nnodes:\n", "  n%d: {kind: switch, count: 250}\n"),
    "groups of nodes": (PLAN, "links: [{each: [h, s]}]\nnodes:\n", "  n%d: {kind: host, count: 250, group: g}\n"),
    "flows": ("topology: ./net.yaml\ntuples: [[flows, bytes, 1MB]]\nflows:\n", NET, "  f%d: hosts -> h1\n"),
    "flows by pattern": ("topology: ./net.yaml\ntuples: [[flows, bytes, 1MB]]\nflows:\n", NET, "  f%d: h* -> h1\n"),
    "flows of none": ("topology: ./net.yaml\ntuples: [[flows, bytes, 1MB]]\nflows:\n", NET, "  f%d: x* -> h1\n"),
    "groups": (PLAN + "groups:\n", NET, "  g%d: [hosts, all]\n"),
    "groups of groups": (PLAN + "groups:\n  g0: [hosts]\n", NET, "  h%d_: [g0, hosts, g0]\n"),
    "tuples": (TUPLES, NET, "  - [hosts, tcp_ecn, 1]\n"),
    "tuples of sysctls": (TUPLES, NET, "  - [hosts, net.ipv4.a%d, 1]\n"),
    "values": (TUPLES + "  - [hosts, tcp_ecn, [", NET, "%d,"),
    "ports": (TUPLES, NET, "  - [s, rate, 1gbit]\n"),
    "excludes": (PLAN + "exclude:\n", NET, "  - {f.bytes: 1MB}\n"),
    "excludes of nothing": (PLAN + "exclude:\n", NET, "  - {f.bytes: [2MB, 1MB]}\n"),
    "expectations": (PLAN + "expect:\n", NET, "  - {metric: packets_lost, max: 1}\n"),
    "figures": (PLAN + "figures:\n", NET, "  - {title: f%d, flow: f}\n"),
    "sweeps": (TUPLES, NET, "  - [h%d, tcp_ecn, [0, 1, 2]]\n"),
    "a covering array": ("design: {cover: 3}\n" + TUPLES, NET, "  - [h%d, tcp_ecn, [0, 1, 2]]\n"),
}


def filled(head: str, line: str) -> str:
    """As often as the line fits."""
    found, size = [head], len(head)
    for number in range(1, SIZE):
        more = line.replace("%d", str(number))
        size += len(more)
        if size > SIZE:
            break
        found.append(more)
    return "".join(found) + ("1]]\n" if line.endswith(",") else "")


def loaded(*given: tuple[str, str]) -> str:
    """What became of plans with their topologies, loaded in a process with limits."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_S, MOST_S))

    done = subprocess.run(
        [sys.executable, "-c", LOAD], input=json.dumps(given), capture_output=True, text=True, check=False,
        preexec_fn=limit, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-600:]}"
    return done.stdout


def test_what_repeats_is_bounded() -> None:
    """All in one process, whose limits are of all of them."""
    given = [
        (filled(plan, line), topology) if topology is NET else (plan, filled(topology, line))
        for plan, topology, line in REPEATED.values()
    ]
    said = loaded(*given).splitlines()
    assert len(said) == len(given)


COUNTS = st.sampled_from(["1", "2", "n", "n + 1", "125", "250"])
NAMES = st.sampled_from("abcd")
LINK = st.one_of(
    st.tuples(st.sampled_from(["link", "each", "mesh", "divide", "zip"]), NAMES, NAMES).map(
        lambda one: f"  - {one[0]}: [{one[1]}, {one[2]}]\n"
    ),
    NAMES.map(lambda one: f"  - chain: {one}\n"),
)
NODE = st.tuples(st.sampled_from(["host", "switch"]), COUNTS, st.sampled_from(["", ", group: g", ", group: hosts"]))


@settings(derandomize=True, deadline=None, max_examples=4)
@given(st.data())
def test_topologies_of_the_grammar(data: st.DataObject) -> None:
    """Many in a process: its limits are of all of them."""
    found = []
    for _ in range(50):
        nodes = [f"  {name}: {{kind: {k}, count: {c}{g}}}\n" for name in "abcd" for k, c, g in [data.draw(NODE)]]
        links = data.draw(st.lists(LINK, min_size=1, max_size=8))
        least = data.draw(st.integers(1, 3))
        ecmp = data.draw(st.sampled_from(["true", "false"]))
        text = f"parameters: {{n: {{default: {least}, least: 1, most: 200}}}}\necmp: {ecmp}\n"
        found.append((PLAN, f"{text}nodes:\n{''.join(nodes)}links:\n{''.join(links)}"))
    assert loaded(*found).count("\n") == len(found)


def test_a_trace_is_read_once_for_all_points(tmp_path: Path) -> None:
    """It was a tenth of a second for each point."""
    (tmp_path / "a.trace").write_text("1\n2\n")
    plan = tmp_path / "p.yaml"
    plan.write_text(
        "topology: pair\nflows: {web: sender -> receiver}\ntuples:\n  - [switch:receiver, rate, ./a.trace]\n"
        "  - [web, requests, [1, 2, 3, 4, 5, 6, 7, 8, 9]]\n  - [web, sizes, 1kB]\n  - [web, arrival_rate, 9]\n"
    )
    capacity._times_ms.cache_clear()
    found = load_plan(plan, metrics={})
    assert len(found.points) == 9
    assert sum(rows(point) for point in found.points) > 0
    assert capacity._times_ms.cache_info().misses == 1
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    writer.write_plan(found.text, {"points": [point.to_json() for point in found.points]}, "", found.traces)
    text = (writer.path / layout.EXPANDED).read_text()
    assert text.count(trace.WORD + "e") == 0
    assert text.count("./a.trace") == 2 * 9
