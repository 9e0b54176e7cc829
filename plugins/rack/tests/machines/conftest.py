# SPDX-License-Identifier: Apache-2.0
"""The rack of machines of these tests, made once; where QEMU is not installed they are skipped, with the reason.

By TESTCTL_MACHINES: "ci" runs test_rack_of_machines.py and test_unit.py, 18 min on two slow processors with TCG; "all"
(`make machines`) runs the others too and prints a table of what was shown; without it they are skipped.
TESTCTL_MACHINES_STATE=DIR: on a rack that is up and deployed, for those who write a test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_rack import image, network
from machine_rack import rack as tool

from plugins.rack.tests.machines.machines import MANAGEMENT, Machines

ALL = os.environ.get("TESTCTL_MACHINES") == "all"
CI = ("test_rack_of_machines.py", "test_unit.py")
STATE = os.environ.get("TESTCTL_MACHINES_STATE", "")
ONE = ["--limit", "controller,alpha"]
OWNER = "owner"
TEARDOWN, LAST = "teardown", "test_nightly.py"
_took: dict[str, tuple[str, float, str]] = {}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if not ALL and collection_path.name.startswith("test_") and collection_path.name not in CI else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One rack serves all: deployed first, torn down last but for what leaves traces, in any order of files."""
    here = Path(__file__).parent
    mine = [item for item in items if item.path.parent == here]
    turns = sorted(mine, key=lambda item: (item.path.name == LAST, TEARDOWN in item.name, item.path.name not in CI))
    places = [index for index, item in enumerate(items) if item.path.parent == here]
    for index, item in zip(places, turns, strict=True):
        items[index] = item


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "tests/machines/" not in report.nodeid:
        return
    outcome, took_s, _ = _took.get(report.nodeid, ("passed", 0.0, ""))
    outcome = report.outcome if report.outcome != "passed" else outcome
    _took[report.nodeid] = (outcome, took_s + report.duration, report.nodeid.rpartition("::")[2])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not ALL:
        return
    terminalreporter.section("what was shown on machines")
    for outcome, took_s, name in _took.values():
        terminalreporter.write_line(f"{outcome:8} {took_s:6.0f} s  {name.removeprefix('test_').replace('_', ' ')}")
    total_s = sum(took_s for _, took_s, _ in _took.values())
    terminalreporter.write_line(f"{'':8} {total_s:6.0f} s  in all")


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two hosts and a switch that answer SSH, with nothing deployed; afterwards nothing of it is left."""
    if STATE:
        yield Machines(Path(STATE), tmp_path_factory.mktemp("m"))
        return
    if os.environ.get("TESTCTL_MACHINES") not in ("ci", "all"):
        pytest.skip(
            "no machines: a quarter of an hour with TCG; TESTCTL_MACHINES=ci runs them, make machines all of them"
        )
    if why := image.lacking():
        pytest.skip(f"no machines: {why}")
    if (state := network.belongs_to()) is not None and (state.parent / OWNER).exists():
        tool.down(state)  # of a test that was killed: there is one such test at a time
    where = tmp_path_factory.mktemp("m")
    (where / OWNER).write_text(sys.executable, encoding="utf-8")
    found = Machines(where / "state", where)
    done = found.tool("up", "--machines", "--management", MANAGEMENT)
    assert done.code == 0, done.said
    print(done.said)
    try:
        yield found
    finally:
        for process in found.runs:
            process.kill()
            process.communicate(timeout=60)
        down = found.tool("down")
        assert down.code == 0, down.said
    assert not Path(found.state).exists()
    assert network.devices() == []
    assert tool.processes(found.state) == []


@pytest.fixture(scope="session")
def before(up: Machines) -> dict[str, list[str]]:
    """The files of each machine before it is touched."""
    return {one.name: up.files(one.name) for one in up.rack.machines}


@pytest.fixture(scope="session")
def rack(up: Machines, before: dict[str, list[str]]) -> Machines:
    """With the agents deployed; in `make machines` twice, and the second time nothing changes."""
    if STATE:
        return up
    first = up.play("deploy")
    assert first.code == 0, first.said
    if ALL:
        second = up.play("deploy")
        assert second.code == 0, second.said
        assert set(second.changed.values()) == {0}, second.said
    return up
