# SPDX-License-Identifier: Apache-2.0
"""Files that a plan names by their paths: one rule for all, wherever a plan may have a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.metrics import metric_names
from testctl.plan import load_plan
from testctl.plan.registry import default_registry
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import FileType

SECRET = "password:*:20228:0:99999\n"
HEAD = "topology: pair\nflows: {web: sender -> receiver}\ntuples:\n"
WEB = "  - [web, requests, 5]\n  - [web, arrival_rate, 9]\n"
ENTITY = {"flow": "web", "host": "sender", "switch": "switch", "port": "switch:receiver"}
TOPOLOGY = "topology"
NODES = "nodes: {sender: {kind: host}, receiver: {kind: host}, switch: {kind: switch}}\n"
NODES += "links: [{each: [sender, switch]}, {each: [receiver, switch]}]\n"
PROGRAM = Path(__file__).parents[3] / "plugins" / "p4c_ebpf" / "tests" / "programs" / "l2.json"
CONTENT = {"rate": "1\n2\n", "sizes": "1kB 0.5\n9kB 1\n", TOPOLOGY: NODES, "program": PROGRAM.read_text(),
           "entries": "table_set_default forward send 1\n"}  # fmt: skip
"""What a file has, by the parameter that takes its path."""


def parameters() -> dict[str, str]:
    """The parameters that take a file's path, by their specs: name -> kind; and the topology."""
    found = {
        spec.name: spec.kind
        for specs in default_registry().specs().values()
        for spec in specs.values()
        if isinstance(spec.type, FileType) and spec.type.file is not None
    }
    return found | {TOPOLOGY: ""}


NAMES = sorted(parameters())


def plan_with(where: Path, name: str, path: str) -> Path:
    tuples = WEB if name == "sizes" else ""
    if name in ("program", "entries"):
        pytest.importorskip("p4c_ebpf")
    if name == "entries":
        (where / "l2.json").write_text(CONTENT["program"], encoding="utf-8")
        tuples = "  - [switch, program, ./l2.json]\n"
    text = HEAD + tuples + f"  - [{ENTITY.get(parameters()[name], '')}, {name}, {path}]\n"
    if name == TOPOLOGY:
        text = HEAD.replace("pair", path) + "  - [web, bytes, 1MB]\n"
    (where / "plan.yaml").write_text(text, encoding="utf-8")
    return where / "plan.yaml"


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """The plan's directory; beside it lies what is nobody's business."""
    (tmp_path / "secret.yaml").write_text(SECRET)
    (tmp_path / "plans").mkdir()
    return tmp_path / "plans"


def test_they_are_found() -> None:
    assert set(NAMES) == set(CONTENT)


def link(where: Path) -> str:
    (where / "link.yaml").symlink_to(where.parent / "secret.yaml")
    return "./link.yaml"


def directory(where: Path) -> str:
    (where / "out").symlink_to(where.parent)
    return "./out/secret.yaml"


def pipe(where: Path) -> str:
    os.mkfifo(where / "pipe.yaml")
    return "./pipe.yaml"


OUTSIDE: dict[str, Callable[[Path], str]] = {
    "above": lambda where: "../secret.yaml",
    "absolute": lambda where: str(where.parent / "secret.yaml"),
    "below and above": lambda where: "./x/../../secret.yaml",
    "a link": link,
    "a link of a directory": directory,
    "a pipe": pipe,
    "a device": lambda where: "/dev/zero",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", OUTSIDE)
def test_no_file_outside_of_the_plan_s_directory_is_read(where: Path, name: str, how: str) -> None:
    path = OUTSIDE[how](where)
    with pytest.raises(PlanError) as refused:
        load_plan(plan_with(where, name, path), metrics={})
    assert "password" not in str(refused.value)
    assert "plan's directory" in str(refused.value) or "want a file; got" in str(refused.value) or name == TOPOLOGY


@pytest.mark.parametrize("name", NAMES)
def test_a_run_has_what_it_needs_to_be_made_again(where: Path, name: str) -> None:
    (where / "mine.yaml").write_text(CONTENT[name])
    file = plan_with(where, name, "./mine.yaml")
    plan = load_plan(file, metrics={})
    (where / "mine.yaml").unlink()
    again = load_plan(plan.text.encode(), metrics={}, topology_text=plan.topology_text, traces=plan.traces)
    assert again.points == plan.points


@pytest.mark.parametrize("path", ["/tmp/mine.yaml", "../mine.yaml"])
@pytest.mark.parametrize("name", sorted({*NAMES} - {TOPOLOGY}))
def test_nor_does_a_run_from_elsewhere_name_one(where: Path, name: str, path: str) -> None:
    """shrink writes what the run kept of each file to its path."""
    (where / "mine.yaml").write_text(CONTENT[name])
    plan = load_plan(plan_with(where, name, "./mine.yaml"), metrics={})
    kept = {file.replace("./mine.yaml", path): value for file, value in plan.traces.items()}
    with pytest.raises(PlanError, match="want the path of a file below the plan's directory"):
        load_plan(plan.text.replace("./mine.yaml", path).encode(), metrics={}, traces=kept)


CONDITIONS = """
exclude:
  - {switch:receiver.rate: ./a.trace, switch:receiver.buffer: 50kB}
expect:
  - {name: a, metric: jain, min: 0, when: {switch:receiver.rate: [./a.trace, 10mbit]}}
  - metric: jain
    name: b
    at_least: 1
    than: {switch:receiver.rate: ./a.trace}
    when: {switch:receiver.rate: ./b.trace}
figures:
  - {title: t, when: {switch:receiver.rate: ./a.trace}}
"""


def test_conditions_name_files_by_the_rule_of_tuples(tmp_path: Path) -> None:
    """In exclude, when, than and figures; also where --set takes the value away, and again from what a run kept."""
    (tmp_path / "a.trace").write_text("1\n2\n")
    (tmp_path / "b.trace").write_text("2\n4\n")
    (tmp_path / "p.yaml").write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, bytes, 100kB]\n"
        "  - [switch:receiver, rate, [./a.trace, ./b.trace, 10mbit]]\n  - [switch:receiver, buffer, [50kB, 100kB]]\n"
        + CONDITIONS
    )
    rate = "switch:receiver.rate"
    with pytest.raises(PlanError, match=f"expect b: than: the plan has no point {rate} = ./a.trace with"):
        load_plan(tmp_path / "p.yaml", metrics=metric_names())
    text = (tmp_path / "p.yaml").read_text().replace("./b.trace}", "./b.trace, switch:receiver.buffer: 100kB}")
    (tmp_path / "p.yaml").write_text(text)
    plan = load_plan(tmp_path / "p.yaml", metrics=metric_names())
    assert len(plan.points) == 5
    kept = load_plan(plan.text.encode(), metrics=metric_names(), traces=plan.traces)
    assert kept.points == plan.points
    assert [one.when for one in kept.expectations] == [one.when for one in plan.expectations] == [
        {1: {0, 2}}, {1: {1}, 2: {1}}
    ]  # fmt: skip
    fewer = load_plan(tmp_path / "p.yaml", metrics=metric_names(), overrides=[f"{rate}=10mbit"])
    assert len(fewer.points) == 2
    text = text.replace("when: {switch:receiver.rate: ./a.trace}", "when: {switch:receiver.rate: ./absent.trace}")
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(PlanError, match=r"p\.yaml:18:.*when.*absent\.trace: can't be read"):
        load_plan(tmp_path / "p.yaml", metrics=metric_names())
