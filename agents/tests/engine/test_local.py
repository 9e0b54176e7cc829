# SPDX-License-Identifier: Apache-2.0
"""Agents without gRPC: the same calls, the same errors, in a process of its own or in this one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testctl_agent.engine.factory import AgentConfig
from testctl_agent.engine.local import forked_local_agent
from testctl_agent.engine.service import Service
from testctl_agent.spec.errors import TestbedError, Unavailable
from testctl_agent.wire import messages
from testctl_agent.wire.pipe import Pipe

from agents.tests.switch import fake as fake  # registers the back end of the configuration here


def a_switch(folder: Path) -> AgentConfig:
    devices = {"s1:alpha": "lo"}
    return AgentConfig("s1", "switch", devices, folder / "work", folder / "journal", "fake", version="1.0+abc")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[tuple[int, Pipe]]:
    pid, pipe = forked_local_agent(a_switch(tmp_path), lambda: None)
    yield pid, pipe
    end(pid, pipe)


def end(pid: int, pipe: Pipe) -> None:
    """Its caller goes; an agent that does not end then hangs the test."""
    pipe.close()
    os.waitpid(pid, 0)


def rate(value: int | str) -> messages.ApplyRequest:
    return messages.ApplyRequest(settings=[messages.Setting(entity="s1:alpha", parameter="rate", value=value)])


def test_it_applies_and_restores_in_a_process_of_its_own(agent: tuple[int, Pipe], tmp_path: Path) -> None:
    pid, pipe = agent
    described = pipe.call("Describe", messages.DescribeRequest())
    assert (described.name, described.kind, described.version) == ("s1", "switch", "1.0+abc")
    reply = pipe.call("Apply", rate(10**9))
    assert [setting.value for setting in reply.before + reply.after] == ["none", 10**9]
    assert (tmp_path / "journal").exists()
    assert pid != os.getpid()
    restored = pipe.call("Restore", messages.RestoreRequest()).restored
    assert restored == (messages.Setting(entity="s1:alpha", parameter="rate", value="none"),)
    assert not (tmp_path / "journal").exists()


def test_it_describes_what_is_asked_for(agent: tuple[int, Pipe]) -> None:
    _, pipe = agent
    everything = pipe.call("Describe", messages.DescribeRequest()).capabilities
    asked = pipe.call("Describe", messages.DescribeRequest(parameters=["rate", "delay"])).capabilities
    assert {one.parameter for one in asked} == {"rate", "delay"}
    assert asked == [one for one in everything if one.parameter in ("rate", "delay")]


def test_a_refused_call_says_why_and_the_next_one_is_answered(agent: tuple[int, Pipe]) -> None:
    _, pipe = agent
    with pytest.raises(TestbedError, match=r"^port s1:alpha, rate: want .*; got 'fast'$"):
        pipe.call("Apply", rate("fast"))
    with pytest.raises(TestbedError, match=r"no task 'bulk'; there are: none$"):
        pipe.call("Stop", messages.StopRequest(task="bulk"))
    assert pipe.call("Restore", messages.RestoreRequest()).restored == ()


def test_a_bug_is_an_error_of_the_call_and_its_traceback_is_on_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def attest(self: Service, request: messages.AttestRequest) -> messages.Attestation:
        raise ZeroDivisionError("one over none")

    def restore(self: Service, request: messages.RestoreRequest) -> messages.RestoreReply:
        raise Unavailable("this kernel has no such thing")

    monkeypatch.setattr(Service, "Attest", attest)
    monkeypatch.setattr(Service, "Restore", restore)
    pid, pipe = forked_local_agent(a_switch(tmp_path), lambda: None)
    with pytest.raises(TestbedError, match=r"^Attest: ZeroDivisionError; the console says more$"):
        pipe.call("Attest", messages.AttestRequest())
    with pytest.raises(Unavailable, match=r"^this kernel has no such thing$"):
        pipe.call("Restore", messages.RestoreRequest())
    end(pid, pipe)
    assert "one over none" in capfd.readouterr().err


def test_an_agent_that_can_not_start_has_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def enter() -> None:
        raise OSError("no such namespace")

    pid, pipe = forked_local_agent(a_switch(tmp_path), enter)
    with pytest.raises(TestbedError, match=r"^ended before it answered"):
        pipe.call("Describe", messages.DescribeRequest())
    _, status = os.waitpid(pid, 0)
    pipe.close()
    assert os.waitstatus_to_exitcode(status) == 1
    assert "no such namespace" in capfd.readouterr().err


def test_an_agent_without_its_program_answers_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def assemble(config: AgentConfig) -> None:
        raise TestbedError("want simple_switch_grpc on PATH; got none")

    monkeypatch.setattr("testctl_agent.engine.local.assemble", assemble)
    pid, pipe = forked_local_agent(a_switch(tmp_path), lambda: None)
    for _ in range(2):
        with pytest.raises(TestbedError, match=r"^want simple_switch_grpc on PATH; got none"):
            pipe.call("Describe", messages.DescribeRequest())
    end(pid, pipe)


def test_an_answer_that_comes_too_late_answers_no_other_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attest(self: Service, request: messages.AttestRequest) -> messages.Attestation:
        time.sleep(0.5)
        return messages.Attestation()

    monkeypatch.setattr(Service, "Attest", attest)
    pid, pipe = forked_local_agent(a_switch(tmp_path), lambda: None)
    assert pipe.call("Restore", messages.RestoreRequest(), 60).restored == ()
    with pytest.raises(TestbedError, match=r"^Attest: no answer within 0\.01 s$"):
        pipe.call("Attest", messages.AttestRequest(), 0.01)
    with pytest.raises(TestbedError, match=r"^ended before it answered"):
        pipe.call("Restore", messages.RestoreRequest(), 60)
    os.waitpid(pid, 0)


def test_an_agent_whose_caller_is_gone_ends(tmp_path: Path) -> None:
    pid, pipe = forked_local_agent(a_switch(tmp_path), lambda: None)
    pipe.call("Restore", messages.RestoreRequest())
    pipe.close()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.root
def test_agents_of_one_process_have_their_own_networks(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_here.py")).endswith("all at home\n")
