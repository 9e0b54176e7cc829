# SPDX-License-Identifier: Apache-2.0
"""A lease ends and everything is restored, also when the agent has no file descriptor left."""

from __future__ import annotations

import os
import resource
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from testctl_agent.daemon import descriptors
from testctl_agent.daemon.config import load
from testctl_agent.daemon.service import DaemonService
from testctl_agent.engine.factory import prepare
from testctl_agent.wire import messages

from agents.tests.daemon.certificates import Authority
from agents.tests.daemon.daemons import SWITCH, Caller, calling, running, written
from agents.tests.daemon.test_lease import until
from agents.tests.daemon.test_tls import keys, peer

pytestmark = pytest.mark.long

DESCRIPTORS, STRANGERS = 300, 500


@contextmanager
def strangers(port: int, count: int) -> Iterator[threading.Event]:
    """So many idle TCP connections; one that is closed is made again.  The event: all have been made once."""
    stop, made = threading.Event(), threading.Event()

    def keep() -> None:
        with selectors.DefaultSelector() as all_of_them:
            begun = 0
            while not stop.is_set():
                while len(all_of_them.get_map()) < count:
                    one = socket.socket()
                    one.setblocking(False)
                    one.connect_ex(("127.0.0.1", port))
                    all_of_them.register(one, selectors.EVENT_READ)
                    begun += 1
                    if begun == count:
                        made.set()
                for key, _ in all_of_them.select(0.05):
                    all_of_them.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
            for key in list(all_of_them.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        thread.join()


def test_strangers_do_not_keep_a_host_from_being_restored(tmp_path: Path, port: int, rig: ExitStack) -> None:
    authority = Authority(tmp_path / "keys")
    tls = keys(authority, authority.sign("s1"))
    path = written(tmp_path, **SWITCH, listen=f"127.0.0.1:{port}", tls=tls)
    daemon = rig.enter_context(running(path, before=["prlimit", f"--nofile={DESCRIPTORS // 2}:{DESCRIPTORS}"]))
    limits = Path(f"/proc/{daemon.pid}/limits").read_text()
    (files,) = [line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files")]
    assert files == [str(DESCRIPTORS)] * 2
    controller = peer(authority, authority.sign("controller"))
    caller: Caller = rig.enter_context(calling(f"127.0.0.1:{port}", controller, "s1"))
    # Before the strangers come: while they are there, they may also keep the controller out.
    caller.acquire("the first", 4.0)
    caller.set_rate(10**9)
    with strangers(port, STRANGERS) as made:
        assert (tmp_path / "journal.jsonl").exists()
        assert made.wait(120)
        until(lambda: not (tmp_path / "journal.jsonl").exists())
        assert "Too many open files" not in daemon.log
    until(caller.acquired)
    assert caller.rate() == "none"


@contextmanager
def none_left(more: int) -> Iterator[list[int]]:
    """This process may have `more` descriptors than it has now; it has taken those, and gives them back after."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/dev/null", os.O_RDONLY)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + more, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        yield taken
    finally:
        for file in taken:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def changed(tmp_path: Path) -> DaemonService:
    """A service with leases, whose switch is changed under a lease that is over."""
    found = load(written(tmp_path, **SWITCH))
    service = DaemonService(prepare(found.agent), found.limits)
    leases = service.require_leases()
    token = leases.acquire("one who is gone", 0.1).token
    with leases.using(token, "Apply"):
        service.Apply(
            messages.ApplyRequest(settings=[messages.Setting(entity="s1:alpha", parameter="rate", value=10**9)])
        )
    assert (tmp_path / "journal.jsonl").exists()
    until(lambda: leases._left_s() <= 0)
    return service


def test_some_are_in_reserve_for_a_restore(tmp_path: Path) -> None:
    service = changed(tmp_path)
    assert service.leases is not None
    with none_left(100) as taken:
        assert taken
        assert service.leases.expire()
        assert not (tmp_path / "journal.jsonl").exists()
        with pytest.raises(OSError, match="Too many open files"):
            os.open("/dev/null", os.O_RDONLY)  # they are in reserve again
    service.close()


def test_what_could_not_be_restored_is_tried_again_by_itself(tmp_path: Path) -> None:
    service = changed(tmp_path)
    assert service.leases is not None
    service._reserve.close()
    service._reserve._count = 0
    with none_left(100):
        threading.Thread(target=service.leases.run, daemon=True).start()  # not before: it restores at once
        until(lambda: bool(service.leases and service.leases._unrestored))
        assert "Too many open files" in service.leases._unrestored
    until(lambda: bool(service.leases and not service.leases._unrestored))
    assert not (tmp_path / "journal.jsonl").exists()
    service.close()


def test_a_reserve_gives_and_takes(tmp_path: Path) -> None:
    reserve = descriptors.Reserve(5)
    before = len(os.listdir("/proc/self/fd"))
    with reserve.given_up():
        assert len(os.listdir("/proc/self/fd")) == before - 5
    assert len(os.listdir("/proc/self/fd")) == before
    reserve.close()
    assert len(os.listdir("/proc/self/fd")) == before - 5


@pytest.mark.root
def test_whatever_fails_in_a_restore_its_retries_restore_all(in_namespace: Callable[..., str]) -> None:
    said = in_namespace(Path(__file__).with_name("root_errno.py"), timeout_s=300.0)
    assert said.endswith("all is as before\n"), said
