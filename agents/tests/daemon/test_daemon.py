# SPDX-License-Identifier: Apache-2.0
"""The agent as a process: how it starts, what it leaves, and what the next one finds."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon import leftovers
from testctl_agent.daemon.config import LONG_CALLS
from testctl_agent.daemon.workdir import MARK
from testctl_agent.engine.journal import Entry, Journal
from testctl_agent.main import main
from testctl_agent.switch.backend import of_plans
from testctl_agent.system.entry_points import BACKENDS

from agents.tests.daemon.daemons import SWITCH, calling, refused_start, running, written
from agents.tests.daemon.test_lease import until


def test_a_life(tmp_path: Path) -> None:
    with running(written(tmp_path)) as daemon:
        with calling(f"unix:{tmp_path}/alpha.sock") as caller:
            assert caller.call("Describe").name == "alpha"
            caller.start("count", "collector", "counters", devices="lo")
            assert (tmp_path / "work" / "count" / "counters_before.json").exists()
        assert (tmp_path / "alpha.sock").stat().st_mode & 0o077 == 0
        assert (tmp_path / "work").stat().st_mode & 0o077 == 0
        assert daemon.end() == 0
        assert "everything is restored" in daemon.log
    assert (tmp_path / "work" / "count" / "counters_after.json").exists()


def test_a_switch(tmp_path: Path) -> None:
    with running(written(tmp_path, **SWITCH)) as daemon, calling(f"unix:{tmp_path}/alpha.sock") as caller:
        words = "switch s1: Apply wants a lease; got none (Acquire gives one)"
        assert caller.refused("Apply") == (grpc.StatusCode.FAILED_PRECONDITION, words)
        caller.acquire()
        assert caller.set_rate(10**9).after[0].value.integer == 10**9
        assert caller.call("Release").restored[0].value.text == "none"
        assert daemon.end() == 0


def test_a_task_gets_its_entity_s_devices_and_no_others(tmp_path: Path) -> None:
    with running(written(tmp_path)), calling(f"unix:{tmp_path}/alpha.sock") as caller:
        caller.start("count", "collector", "counters")
        found = json.loads((tmp_path / "work" / "count" / "counters_before.json").read_text())
        assert set(found["device"]) == {"lo"}
        with pytest.raises(grpc.RpcError, match=r"alpha, task more: want devices of lo; got 'any'"):
            caller.start("more", "collector", "counters", device="any")


def test_long_calls_leave_threads_to_others(serving: Callable[..., Any], tmp_path: Path, rig: ExitStack) -> None:
    _, found = serving()
    caller = rig.enter_context(calling(found.listen))
    caller.start("sample", "collector", "tcp_info")
    wait = pb.WaitRequest(task="sample", timeout_ns=10**18)
    calls = [caller.stub.Wait.future(wait) for _ in range(LONG_CALLS + 1)]
    until(lambda: any(call.done() for call in calls))
    (refused,) = [call for call in calls if call.done()]
    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.details() == f"alpha: want at most {LONG_CALLS} calls of Wait and Fetch at a time"
    caller.call("Stop", pb.StopRequest(task="sample"))
    assert sum(call.result().ended for call in calls if call is not refused) == LONG_CALLS


def test_the_service_manager_is_told(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        with running(written(tmp_path), env={"NOTIFY_SOCKET": address}) as daemon:
            assert manager.recv(100) == b"READY=1"
            assert daemon.end() == 0
            assert manager.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize("lease", [True, False])
def test_the_service_manager_hears_that_it_lives(tmp_path: Path, lease: bool) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        with running(written(tmp_path, lease=lease), env={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"}):
            heard = [manager.recv(100) for _ in range(6)]
    assert heard.count(b"READY=1") == 1
    assert heard.count(b"WATCHDOG=1") == 5


def test_a_wrong_file_is_refused_with_2(tmp_path: Path) -> None:
    path = written(tmp_path, kind="router")
    want = f'testctl-agent: {path}: kind: want "host" or "switch"; got "router"\n'
    assert refused_start(path) == (2, want)


def test_the_back_end_of_tests_is_of_tests_alone(tmp_path: Path) -> None:
    path = written(tmp_path, **SWITCH)
    argv = [sys.executable, "-m", "testctl_agent", "serve", "--check", "--config", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    there = ", ".join(sorted({*of_plans(), *BACKENDS.names()}))
    assert f'backend: want one of {there}; got "fake"' in done.stderr


def test_a_file_can_be_checked_without_serving(tmp_path: Path) -> None:
    assert main(["serve", "--check", "--config", str(written(tmp_path))]) == 0
    assert main(["serve", "--check", "--config", str(written(tmp_path, lease="yes"))]) == 2
    assert not (tmp_path / "work").exists()


def test_an_address_that_can_t_be_had_is_refused_with_3(tmp_path: Path) -> None:
    path = written(tmp_path, listen=f"unix:{tmp_path}/nowhere/alpha.sock")
    code, said = refused_start(path)
    assert code == 3
    assert f"testctl-agent: host alpha: can't listen at unix:{tmp_path}/nowhere/alpha.sock" in said


def test_one_agent_a_journal(tmp_path: Path) -> None:
    with running(written(tmp_path)):
        (tmp_path / "second").mkdir()
        second = written(tmp_path / "second", journal=str(tmp_path / "journal.jsonl"))
        want = f"testctl-agent: {tmp_path}/journal.jsonl: another agent that runs has this journal\n"
        assert refused_start(second) == (3, want)


def test_a_journal_that_can_t_be_restored_stops_an_agent_without_leases(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.jsonl").add(Entry("beta", "mtu", 1500, 5))
    code, said = refused_start(written(tmp_path))
    want = "testctl-agent: beta, mtu: not restored: beta: not an entity of this agent, which has alpha\n"
    assert (code, said) == (3, want)


def test_with_leases_it_serves_and_gives_none(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.jsonl").add(Entry("beta", "mtu", 1500, 5))
    with running(written(tmp_path, lease=True)) as daemon, calling(f"unix:{tmp_path}/alpha.sock") as caller:
        assert caller.facts()["link lo flags"] == "up"
        code, words = caller.refused("Acquire", pb.AcquireRequest(holder="ann"))
        assert (code, words) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "host alpha: no lease before all is restored: "
            "beta, mtu: not restored: beta: not an entity of this agent, which has alpha",
        )
        (tmp_path / "journal.jsonl").unlink()  # as a user who restored it by hand does
        caller.acquire()
        assert daemon.end() == 0


def test_after_a_kill_there_is_no_lease_no_program_and_no_file(tmp_path: Path) -> None:
    path = written(tmp_path, lease=True)
    with running(path) as daemon, calling(f"unix:{tmp_path}/alpha.sock") as caller:
        caller.acquire()
        caller.start("sample", "collector", "tcp_info")
        (left,) = leftovers.writers(tmp_path / "work")
        token = caller.token
        daemon.kill()
    os.kill(left, 0)
    with running(path) as daemon, calling(f"unix:{tmp_path}/alpha.sock") as caller:
        assert [path.name for path in (tmp_path / "work").iterdir()] == [MARK]
        until(lambda: not os.path.exists(f"/proc/{left}/fd/1"))
        caller.token = token
        assert caller.refused("Restore")[1] == "host alpha: Restore wants a lease; the one given has ended"
        caller.token = ""
        caller.acquire()
        caller.start("sample", "collector", "tcp_info")
        assert f"process {left}, left by an agent that was killed, is ended" in daemon.log
        assert daemon.end() == 0


def test_only_programs_of_tasks_are_ended(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "lease-3" / "task").mkdir(parents=True)
    (work / "mine").mkdir()
    (work / "lease-4").symlink_to(work / "mine")
    pid = os.fork()
    if not pid:
        output = os.open(tmp_path / "workings", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        signal.pause()
        os._exit(0)
    try:
        until(lambda: os.readlink(f"/proc/{pid}/fd/1") == str(tmp_path / "workings"))
        leftovers.end(work)
        assert sorted(path.name for path in work.iterdir()) == ["lease-4", "mine"]
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.long
@pytest.mark.root
def test_killed_at_any_moment_the_next_agent_restores_all(in_namespace: Callable[..., str]) -> None:
    said = in_namespace(Path(__file__).with_name("root_crash.py"), timeout_s=300.0)
    assert said.endswith("all is as before\n"), said


@pytest.mark.long
@pytest.mark.root
@pytest.mark.parametrize("mark", ["ack", "data"])
def test_killed_before_each_step_the_next_agent_restores_all(in_namespace: Callable[..., str], mark: str) -> None:
    said = in_namespace(Path(__file__).with_name("root_steps.py"), mark, timeout_s=300.0)
    assert said.endswith("all is as before\n"), said


@pytest.mark.root
def test_the_documented_capabilities_are_enough(in_namespace: Callable[..., str]) -> None:
    assert "enough: CAP_" in in_namespace(Path(__file__).with_name("root_capabilities.py"))


def test_it_ends_however_early_it_is_asked_to(tmp_path: Path) -> None:
    """A signal that comes just as the agent begins to wait for one is not waited for again."""
    path = written(tmp_path, lease=True)
    for _ in range(20):
        with running(path) as daemon:
            assert daemon.end() == 0


@pytest.mark.root
def test_nothing_of_a_point_stays(in_namespace: Callable[..., str]) -> None:
    """TESTCTL_LEAK_POINTS=1000 for a thousand."""
    points = os.environ.get("TESTCTL_LEAK_POINTS", "25")
    said = in_namespace(Path(__file__).with_name("root_leaks.py"), points, timeout_s=300.0 + 10 * int(points))
    assert said.endswith("nothing grew\n"), said
