# SPDX-License-Identifier: Apache-2.0
"""Whatever a peer sends, the agent lives, says why not in few words, and nothing is changed."""

from __future__ import annotations

import os
import pkgutil
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from testctl_agent import collect, generators
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.workdir import MARK
from testctl_agent.engine import limits
from testctl_agent.engine.refusals import BadRequest
from testctl_agent.generators import tgen
from testctl_agent.params import registry

from agents.tests.daemon.daemons import CALL_S, Caller, Daemon, calling, running, written

pytestmark = pytest.mark.long

METHODS = [method.name for method in pb.DESCRIPTOR.services_by_name["Agent"].methods]
STREAMS = {"Fetch"}
WORDS = {
    kind: sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    for kind, package in (("generator", generators), ("collector", collect))
}
OPTIONS = [
    "side", "address", "bind", "server_port", "client_port", "parallel", "start_ns", "end_ns", "limit_ns", "seed",
    "device", "devices", "interval_ns", "ports", *registry.specs()["flow"],
]  # fmt: skip
RIGHT = {
    "address": pb.Value(text="127.0.0.1"), "bind": pb.Value(text="127.0.0.1"), "side": pb.Value(text="server"),
    "server_port": pb.Value(integer=40_123), "device": pb.Value(text="lo"), "limit_ns": pb.Value(integer=1),
}  # fmt: skip
ROOT = os.geteuid() == 0
NEVER_HERE = {"telemetry", "link_origin", "port_queue", "p4_state", "tcp_events", "iperf3", "command"} | (
    set() if ROOT else {"capture"}
)
"""What wants a switch, root, a port that is free, or an agent of the lab."""
APART = ["unshare", "--net", "--mount", "sh", "-c", 'mount -t sysfs sys /sys && ip link set lo up && exec "$@"', "sh"]
"""As root a setting may by chance be right: the agent has a loopback of its own."""
REFUSALS = {
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL,
}  # fmt: skip
FUZZ = settings(derandomize=True, database=None, suppress_health_check=list(HealthCheck))
NASTY = st.sampled_from(
    ["", "..", "../../etc/passwd", "/etc/passwd", "-w", "a\0b", "x" * 200_000, "127.0.0.1", "lo", "\u202e", "1" * 50]
)
VALUES = st.one_of(
    NASTY.map(lambda text: pb.Value(text=text)),
    st.text(max_size=20).map(lambda text: pb.Value(text=text)),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 70_000)).map(lambda n: pb.Value(integer=n)),
    st.booleans().map(lambda flag: pb.Value(flag=flag)),
    st.floats().map(lambda number: pb.Value(number=number)),
    st.just(pb.Value()),
)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Caller]]:
    """A process that wants leases, and one who has the lease."""
    folder = tmp_path_factory.mktemp("fuzz")
    path = written(folder, lease=True, limits={"tasks": 8, "message_bytes": 1 << 20})
    how = APART if ROOT else []
    with running(path, before=how) as daemon, calling(f"unix:{folder}/alpha.sock") as caller:
        before = caller.facts()
        caller.acquire()
        yield daemon, caller
        assert caller.facts() == before
        assert not (folder / "journal.jsonl").exists()
        assert not any(folder.parent.glob("*/passwd"))
        assert daemon.end() == 0
        assert [path.name for path in (folder / "work").iterdir()] == [MARK]


def sent(caller: Caller, method: str, data: bytes, token: str) -> tuple[grpc.StatusCode, str]:
    """Send bytes as they are; how that ended."""
    kind = caller.channel.unary_stream if method in STREAMS else caller.channel.unary_unary
    call = kind(f"/testctl.v1.Agent/{method}")
    metadata = [("testctl-lease", token)] if token else []
    try:
        found = call(data, metadata=metadata, timeout=CALL_S)
        if method in STREAMS:
            list(found)
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def keep_lease(caller: Caller) -> None:
    """A fuzzer may well have released it."""
    try:
        caller.call("Renew")
    except grpc.RpcError:
        caller.token = ""
        caller.acquire()


@pytest.mark.parametrize("method", METHODS)
def test_any_bytes(agent: tuple[Daemon, Caller], method: str) -> None:
    daemon, caller = agent

    @settings(FUZZ, max_examples=25)
    @given(data=st.binary(max_size=200), with_token=st.booleans())
    def fuzz(data: bytes, with_token: bool) -> None:
        keep_lease(caller)
        code, words = sent(caller, method, data, caller.token if with_token else "")
        assert code == grpc.StatusCode.OK or code in REFUSALS - {grpc.StatusCode.INTERNAL}, words
        assert len(words) < 3000

    fuzz()
    assert daemon.process.poll() is None
    keep_lease(caller)


def test_too_large_a_message(agent: tuple[Daemon, Caller]) -> None:
    daemon, caller = agent
    assert sent(caller, "Apply", bytes(2 << 20), caller.token)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert daemon.process.poll() is None


@pytest.mark.parametrize("size", [64 << 20, 400 << 20])
def test_a_small_message_that_becomes_too_large(agent: tuple[Daemon, Caller], size: int) -> None:
    """Zeros, compressed a thousandfold: refused before they are all there."""
    daemon, caller = agent
    call = caller.channel.unary_unary("/testctl.v1.Agent/Apply")
    with pytest.raises(grpc.RpcError) as refused:
        call(bytes(size), timeout=CALL_S, compression=grpc.Compression.Gzip)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    (peak_kb,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak_kb < 200_000


@settings(FUZZ, max_examples=150)
@given(
    entity=st.sampled_from(["alpha", "", "beta"]) | st.text(max_size=20),
    name=st.sampled_from([*registry.specs()["host"], "net.ipv4.tcp_sack", "net.core.../../kernel/panic"]) | NASTY,
    value=VALUES.filter(lambda value: value.WhichOneof("of") != "integer") | st.just(pb.Value(integer=-7)),
)
def test_any_setting(agent: tuple[Daemon, Caller], entity: str, name: str, value: Any) -> None:
    daemon, caller = agent
    keep_lease(caller)
    request = pb.ApplyRequest(settings=[pb.Setting(entity=entity, parameter=name, value=value)])
    code, words = sent(caller, "Apply", request.SerializeToString(), caller.token)
    # A value may by chance be right; then it is taken back.
    assert code == grpc.StatusCode.OK or code in REFUSALS - {grpc.StatusCode.INTERNAL}, words
    caller.call("Restore")
    assert daemon.process.poll() is None


@pytest.mark.skipif(bool(tgen.unavailable()) or shutil.which("tcpdump") is None, reason="tgen and tcpdump")
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in WORDS for name in WORDS[kind]])
def test_any_options(agent: tuple[Daemon, Caller], kind: str, name: str) -> None:
    daemon, caller = agent
    number = 0
    started = 0

    @settings(FUZZ, max_examples=5 if name == "capture" else 40)
    @given(options=st.dictionaries(st.sampled_from(OPTIONS), VALUES, max_size=8))
    @example(options={})
    def fuzz(options: dict[str, Any]) -> None:
        nonlocal number, started
        keep_lease(caller)
        number += 1
        task = f"{name}-{number}"
        options = {**RIGHT, **options}
        request = pb.StartRequest(task=task, kind=kind, name=name, options=options)
        code, words = sent(caller, "Start", request.SerializeToString(), caller.token)
        assert code == grpc.StatusCode.OK or code in REFUSALS - {grpc.StatusCode.INTERNAL}, words
        if code == grpc.StatusCode.OK:
            started += 1
            assert caller.call("Stop", pb.StopRequest(task=task)).ended

    fuzz()
    assert started or name in NEVER_HERE
    assert daemon.process.poll() is None


@pytest.mark.parametrize("task", ["", ".", "..", "../x", "/tmp/x", "a/b", "a\0b", "a b", "x" * 101, "ä", "1"])
def test_a_task_is_a_word(agent: tuple[Daemon, Caller], task: str) -> None:
    _, caller = agent
    keep_lease(caller)
    code, words = caller.refused("Start", pb.StartRequest(task=task, kind="collector", name="counters"))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert words.startswith("alpha: a task's name is a word of at most 100 characters; got ")


@pytest.mark.parametrize("file", ["", "../count/counters_before.json", "/etc/passwd", "stderr.txt", "a\0b", "."])
def test_only_a_task_s_own_files_are_fetched(agent: tuple[Daemon, Caller], file: str) -> None:
    _, caller = agent
    keep_lease(caller)
    try:
        caller.start("count", "collector", "counters", devices="lo")
    except grpc.RpcError as error:
        assert "was started before" in (error.details() or "")  # noqa: PT017 -- by the case before
    data = pb.FetchRequest(task="count", file=file).SerializeToString()
    code, words = sent(caller, "Fetch", data, caller.token)
    assert (code, words.startswith("alpha: task 'count' has no file ")) == (grpc.StatusCode.FAILED_PRECONDITION, True)


def test_no_more_tasks_than_the_limit(agent: tuple[Daemon, Caller]) -> None:
    _, caller = agent
    caller.call("Release")
    caller.token = ""
    caller.acquire()
    for number in range(8):
        caller.start(f"c{number}", "collector", "counters", devices="lo")
    code, words = caller.refused("Start", pb.StartRequest(task="c8", kind="collector", name="counters"))
    assert (code, words) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "alpha: want at most 8 tasks at a time; 8 run")
    caller.call("Stop", pb.StopRequest(task="c3"))
    caller.start("c8", "collector", "counters", devices="lo")


def test_a_full_directory_starts_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, lease=True, limits={"work_bytes": 1 << 20})
    with running(path), calling(f"unix:{tmp_path}/alpha.sock") as caller:
        caller.acquire()
        caller.start("first", "collector", "counters", devices="lo")
        (tmp_path / "work" / "lease-1" / "first" / "big").write_bytes(bytes(1 << 20))
        code, words = caller.refused("Start", pb.StartRequest(task="second", kind="collector", name="counters"))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert " is full: want less than 1048576 bytes; got " in words


@pytest.mark.parametrize("name", ["address", "bind", "peer", "trex_server"])
def test_where_to_is_an_address_and_nothing_is_looked_up(name: str) -> None:
    limits.options("alpha", {name: "192.0.2.7"})
    with pytest.raises(BadRequest, match=rf"^alpha, option {name}: want an IP address; got 'localhost'$"):
        limits.options("alpha", {name: "localhost"})
