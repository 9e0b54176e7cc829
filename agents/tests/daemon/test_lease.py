# SPDX-License-Identifier: Apache-2.0
"""Leases: one holder at a time, and nothing of a lease is left when the next begins."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon import config
from testctl_agent.daemon.lease import MAX_S, Leases
from testctl_agent.daemon.service import DaemonService
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.refusals import BadRequest, HeldByOther, Refusal
from testctl_agent.spec.errors import ApplyError

from agents.tests.daemon.daemons import Caller, calling

Serving = Callable[..., tuple[DaemonService, config.DaemonConfig]]
END_S = 120.0


@dataclass
class World:
    """A clock that a test moves, and an entity that may be hard to restore."""

    now_s: float = 1000.0
    broken: str = ""
    cleaned: int = 0
    during: list[Callable[[], None]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def clean(self) -> list[Setting]:
        for do in self.during:
            do()
        if self.broken:
            raise ApplyError(self.broken)
        self.cleaned += 1
        return [Setting("alpha", "mtu", 1500)]

    def leases(self, unrestored: str = "") -> Leases:
        return Leases("host alpha", self.clean, unrestored, self.clock)


def test_the_holder_is_named_and_for_how_long() -> None:
    world = World()
    leases = world.leases()
    leases.acquire("ann@desk, run 7", 12.5)
    world.now_s += 0.4
    with pytest.raises(HeldByOther, match=r"^host alpha: leased to ann@desk, run 7 for another 13 s$"):
        leases.acquire("ben", 1)
    with pytest.raises(HeldByOther, match=r"^host alpha: leased to ann@desk, run 7 for another 13 s$"):
        leases.check("0" * 64, "Apply")


@pytest.mark.parametrize(("wanted", "given"), [(0.0, MAX_S), (-5.0, MAX_S), (3.0, 3.0), (1e9, MAX_S), (1e-9, 0.1)])
def test_a_lifetime_is_clamped(wanted: float, given: float) -> None:
    assert World().leases().acquire("ann", wanted).lifetime_s == given


@pytest.mark.parametrize("holder", ["", "x" * 201, "two\nlines", "bell\a"])
def test_a_holder_is_fit_to_print(holder: str) -> None:
    with pytest.raises(BadRequest, match=r"^host alpha: a lease wants a holder, printable"):
        World().leases().acquire(holder, 1)


def test_a_lease_ends_with_its_time_and_not_before() -> None:
    world = World()
    leases = world.leases()
    token = leases.acquire("ann", 10).token
    world.now_s += 9.9
    assert not leases.expire()
    assert leases.renew(token).lifetime_s == 10
    world.now_s += 9.9
    leases.check(token, "Apply")
    world.now_s += 0.1
    for refused in (lambda: leases.check(token, "Apply"), lambda: leases.renew(token), lambda: leases.release(token)):
        with pytest.raises(Refusal, match=r"wants a lease; the one given has ended$"):
            refused()
    with pytest.raises(HeldByOther, match=r"leased to ann, whose lease has ended; everything is being restored$"):
        leases.acquire("ben", 1)
    assert leases.expire()
    assert world.cleaned == 1
    leases.acquire("ben", 1)


def test_nobody_may_do_anything_while_a_lease_ends() -> None:
    world = World()
    leases = world.leases()
    token = leases.acquire("ann", 10).token
    seen: list[str] = []

    def tries() -> None:
        for attempt in (lambda: leases.check(token, "Apply"), lambda: leases.acquire("ben", 1)):
            with pytest.raises(Refusal) as refused:
                attempt()
            seen.append(str(refused.value))

    world.during.append(tries)
    assert leases.release(token) == [Setting("alpha", "mtu", 1500)]
    assert seen == [
        "host alpha: Apply wants a lease; the one given has ended",
        "host alpha: leased to ann, whose lease has ended; everything is being restored",
    ]


def test_the_end_waits_for_a_change_under_way() -> None:
    world = World()
    leases = world.leases()
    token = leases.acquire("ann", 10).token
    releasing = threading.Thread(target=lambda: leases.release(token))
    with leases.using(token, "Apply"):
        releasing.start()
        while True:  # until the token is worth nothing: from then on only this change is waited for
            try:
                leases.check(token, "Apply")
            except Refusal:
                break
        assert world.cleaned == 0
    releasing.join(END_S)
    assert world.cleaned == 1


def test_what_is_not_restored_keeps_the_next_out_until_it_is() -> None:
    world = World(broken="alpha, mtu: not restored: it burns")
    leases = world.leases()
    token = leases.acquire("ann", 10).token
    with pytest.raises(Refusal, match=r"^alpha, mtu: not restored: it burns$"):
        leases.release(token)
    with pytest.raises(Refusal, match=r"^host alpha: no lease before all is restored: alpha, mtu: not restored"):
        leases.acquire("ben", 1)
    world.broken = ""
    leases.acquire("ben", 1)
    assert world.cleaned == 1


def test_a_bug_in_the_restore_ends_the_lease_as_well() -> None:
    world = World(during=[lambda: {}["nothing"]])
    leases = world.leases()
    with pytest.raises(Refusal, match=r"^KeyError; the agent's log says more$"):
        leases.release(leases.acquire("ann", 10).token)
    world.during.clear()
    leases.acquire("ben", 1)


def test_what_a_crash_left_unrestored_is_tried_again_first() -> None:
    world = World(broken="it burns")
    leases = world.leases(unrestored="it burned before")
    with pytest.raises(Refusal, match=r"^host alpha: no lease before all is restored: it burns$"):
        leases.acquire("ann", 1)


def test_a_thread_that_is_stuck_does_not_say_that_it_lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "40000")

        def stuck() -> tuple[()]:
            while select.select([manager], [], [], 0)[0]:
                manager.recv(100)
            heard.append(select.select([manager], [], [], 0.3)[0])
            return ()

        leases = Leases("host alpha", stuck)
        leases.acquire("first", 0.1)
        thread = threading.Thread(target=leases.run)
        thread.start()
        manager.recv(100)
        while not heard:
            time.sleep(0.01)
        assert manager.recv(100) == b"WATCHDOG=1", "it goes on"
        leases.close()
        thread.join()
    assert heard == [[]]


def test_a_token_is_in_no_text() -> None:
    grant = World().leases().acquire("ann", 1)
    assert grant.token not in f"{grant} {grant!r}"
    assert len({World().leases().acquire("ann", 1).token for _ in range(50)}) == 50


STEPS = st.lists(
    st.tuples(st.sampled_from(["acquire", "renew", "release", "pass", "expire"]), st.integers(0, 3), st.floats(0, 40)),
    max_size=40,
)


@settings(max_examples=300)
@given(steps=STEPS)
def test_never_two_holders_and_a_clean_up_between_any_two(steps: list[tuple[str, int, float]]) -> None:
    """Against a model: the last grant that was neither released nor outlived is the one that counts."""
    world = World()
    leases = world.leases()
    tokens = dict.fromkeys(range(4), "")
    grants, cleans_at_grant = 0, 0
    for step, who, number in steps:
        try:
            if step == "acquire":
                tokens[who] = leases.acquire(f"holder {who}", number).token
                assert world.cleaned >= cleans_at_grant + (1 if grants else 0)
                grants, cleans_at_grant = grants + 1, world.cleaned
            elif step == "renew":
                leases.renew(tokens[who])
            elif step == "release":
                leases.release(tokens[who])
            elif step == "pass":
                world.now_s += number
            else:
                leases.expire()
        except Refusal:
            pass
        working = 0
        for token in tokens.values():
            try:
                leases.check(token, "Apply")
            except Refusal:
                continue
            working += 1
        assert working <= 1


def test_a_wall_clock_is_not_looked_at(monkeypatch: pytest.MonkeyPatch, serving: Serving, rig: ExitStack) -> None:
    service, found = serving(lease=True)
    caller = rig.enter_context(calling(found.listen))
    caller.acquire()
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "time_ns", lambda: 4 * 10**18)
    caller.call("Restore")
    assert service.leases is not None
    assert not service.leases.expire()


@pytest.mark.parametrize("method", ["Apply", "Restore", "Start", "Wait", "Stop", "Fetch", "Renew", "Release"])
def test_without_a_lease_nothing_is_done(caller: Caller, method: str) -> None:
    request = getattr(pb, f"{method}Request")()
    if method == "Fetch":
        with pytest.raises(grpc.RpcError) as refused:
            list(caller.call("Fetch", request))
        said = refused.value.code(), refused.value.details()
    else:
        said = caller.refused(method, request)
    words = f"host alpha: {method} wants a lease; got none (Acquire gives one)"
    assert said == (grpc.StatusCode.FAILED_PRECONDITION, words)


def test_looking_is_free(caller: Caller) -> None:
    assert caller.call("Describe").name == "alpha"
    assert caller.facts()["link lo mtu"] == "65536"


def test_an_agent_without_leases_says_so(serving: Serving, rig: ExitStack) -> None:
    _, found = serving()
    caller = rig.enter_context(calling(found.listen))
    words = "host alpha: gives no leases, and wants none"
    assert caller.refused("Acquire", pb.AcquireRequest(holder="ann")) == (grpc.StatusCode.UNIMPLEMENTED, words)
    caller.call("Restore")


def until(happened: Callable[[], bool]) -> None:
    """Wait for what has to happen, however busy the machine is."""
    for _ in range(int(END_S / 0.01)):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError(f"did not happen within {END_S:g} s")


def test_the_tasks_of_a_lease_end_with_it(serving: Serving, rig: ExitStack, tmp_path: Path) -> None:
    """A holder that dies: its program is stopped, its files go, its names are free."""
    _, found = serving(lease=True)
    caller = rig.enter_context(calling(found.listen))
    lease = caller.acquire("one that dies", 3.0)
    caller.start("sample", "collector", "tcp_info")
    caller.start("count", "collector", "counters", devices="lo")
    folder = tmp_path / "work" / "lease-1"
    assert (folder / "count" / "counters_before.json").exists()
    until(lambda: not folder.exists())
    assert lease.lifetime_ns == 3 * 10**9
    code, words = caller.refused("Stop", pb.StopRequest(task="count"))
    assert (code, words) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "host alpha: Stop wants a lease; the one given has ended",
    )
    until(caller.acquired)
    caller.start("count", "collector", "counters", devices="lo")
    assert caller.call("Stop", pb.StopRequest(task="count")).ok
    assert (tmp_path / "work" / "lease-2" / "count").exists()
    chunks = list(caller.call("Fetch", pb.FetchRequest(task="count", file="counters_after.json")))
    assert chunks[-1].sha256
    caller.call("Release")
    assert list((tmp_path / "work").iterdir()) == []
