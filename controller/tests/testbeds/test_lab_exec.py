# SPDX-License-Identifier: Apache-2.0
"""Which programs `testctl lab exec` runs where, and what it refuses before a lab is booted."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from testctl.lab.programs import FAMILIES, Ended, exit_code, names_of
from testctl.plan import load_topology
from testctl.testbeds.lab_exec import captures_of, point_for, programs_of
from testctl_agent.spec import trace
from testctl_agent.spec.errors import PlanError

from controller.tests.support.refusal import refusal

PAIR = load_topology("pair")


def test_the_command_runs_on_the_first_host_or_on_the_one_named() -> None:
    (alone,) = programs_of([], ["true", "a b"], PAIR)
    assert (alone.host, alone.argv, alone.command_line) == ("sender", ("true", "a b"), "true 'a b'")
    (named,) = programs_of(["receiver"], ["true"], PAIR)
    assert named.host == "receiver"


def test_programs_of_several_hosts_keep_their_order_and_the_command_comes_last() -> None:
    first, last = programs_of(["sender", "receiver=sh -c 'echo \"a b\"'"], ["true"], PAIR)
    assert (first.host, first.argv) == ("receiver", ("sh", "-c", 'echo "a b"'))
    assert last.host == "sender"


@pytest.mark.parametrize(
    ("hosts", "command", "words"),
    [
        ([], [], "want a COMMAND after --"),
        (["nowhere=true"], [], "--host nowhere: topology pair has no such host; it has sender, receiver"),
        (["sendr"], ["true"], "did you mean sender"),
        (["switch"], ["true"], "has no such host"),
        ([""], ["true"], "has no such host"),
        (["sender"], [], "want one HOST for the COMMAND after --, or HOST=COMMAND"),
        (["sender", "receiver"], ["true"], "want one HOST"),
        (["sender="], [], "--host sender: want a command; got none"),
        (["sender='true"], [], "No closing quotation"),
        (["sender=true"], ["true"], "--host sender: want one command on each host; got two"),
        ([], ["no-such-program"], "sender: no-such-program: not in PATH"),
        ([], ["./no-such-program"], "sender: ./no-such-program: not there, or can't be executed"),
        ([], ["/etc/passwd"], "not there, or can't be executed"),
        ([], [""], "want a command; got none"),
    ],
)
def test_what_is_refused(hosts: list[str], command: list[str], words: str) -> None:
    assert words in refusal(programs_of, hosts, command, PAIR)


def test_a_program_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.chdir(tmp_path)
    assert programs_of([], ["./mine"], PAIR)[0].argv == ("./mine",)


def test_a_point_of_a_topology_with_settings(tmp_path: Path) -> None:
    point = point_for("star:hosts=4", "6.1", ["switch:h1.rate=1gbit"])
    assert list(point.topology.hosts) == ["h1", "h2", "h3", "h4"]
    assert point.flows == ()
    assert point.settings["h1"]["kernel"] == "6.1"
    assert point.settings["switch:h1"]["rate"] == 10**9
    own = tmp_path / "mine.yaml"
    own.write_text(
        "about: two\nnodes:\n  a: {kind: host}\n  b: {kind: host}\n  s: {kind: switch}\n"
        "links:\n  - link: [a, s]\n  - link: [s, b]\n"
    )
    assert list(point_for(str(own), None, []).topology.hosts) == ["a", "b"]


def test_a_trace_below_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.trace").write_text("1\n2\n")
    monkeypatch.chdir(tmp_path)
    point = point_for("pair", None, ["switch:receiver.rate=./a.trace"])
    assert trace.is_trace(point.settings["switch:receiver"]["rate"])


def test_the_names_of_hosts_by_family() -> None:
    four, six, both = (point_for("pair", None, [], family).topology for family in FAMILIES)
    assert names_of(four, "4") == "127.0.0.1 localhost\n10.0.0.1 sender\n10.0.0.2 receiver\n"
    assert names_of(six, "6") == "127.0.0.1 localhost\n::1 localhost\nfd00::1 sender\nfd00::2 receiver\n"
    assert names_of(both, "both").splitlines()[2:] == [
        "10.0.0.1 sender", "10.0.0.2 receiver", "fd00::1 sender", "fd00::2 receiver"
    ]  # fmt: skip
    assert not four.hosts6
    with pytest.raises(PlanError, match="--family: want 4, 6 or both; got 5"):
        point_for("pair", None, [], "5")


@pytest.mark.parametrize(
    ("topology", "sets", "words"),
    [
        ("piar", [], "no topology named piar"),
        ("./none.yaml", [], "none.yaml"),
        ("star:hosts=1", [], "want hosts from 2 to 100; got hosts=1"),
        ("star:host=3", [], "want its parameters, hosts=N; got host=3"),
        ("pair:x=3", [], "want its parameters, none; got x=3"),
        ("pair", ["sender.mtu"], "--set"),
        ("pair", ["nobody.mtu=1500"], "nobody"),
        ("pair", ["switch.delay=1ms,2ms"], "want one value for each setting; got 2 combinations"),
        ("pair", ["sender.capture=on"], "--capture"),
        ("pair", ["flows.bytes=3"], "no options of flows"),
        ("pair", ["programs.bytes=3"], "no options of flows"),
        ("pair", ["programs.duration=3s"], "no options of flows"),
        ("pair", ["switch.fate=drop data 1 of programs"], "want it in a plan, whose flows fates are about"),
        ("pair", ["switch:receiver.rate=./absent.trace"], "./absent.trace: can't be read"),
    ],
)
def test_points_that_are_refused(topology: str, sets: list[str], words: str) -> None:
    assert words in refusal(point_for, topology, None, sets)


def test_where_packets_go(tmp_path: Path) -> None:
    both = programs_of(["receiver=true", "sender=true"], [], PAIR)
    assert captures_of(None, both) == {}
    assert captures_of(tmp_path / "a.pcap", both[:1]) == {"receiver": tmp_path / "a.pcap"}
    names = {host: file.name for host, file in captures_of(tmp_path / "a.pcap", both).items()}
    assert names == {"receiver": "a-receiver.pcap", "sender": "a-sender.pcap"}
    for wrong in (tmp_path, tmp_path / "none" / "a.pcap"):
        with pytest.raises(PlanError, match="want a file in a directory that is there"):
            captures_of(wrong, both)


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ([Ended("a", 3)], 3),
        ([Ended("a", 1), Ended("b", 2)], 2),
        ([Ended("a", 1), Ended("b", 0)], 1),
        ([Ended("a", 143, stopped=True), Ended("b", 0)], 0),
    ],
)
def test_the_exit_code(ends: list[Ended], code: int) -> None:
    assert exit_code(ends) == code
