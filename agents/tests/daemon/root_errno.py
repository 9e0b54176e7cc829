# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: each single thing that a restore does fails once, with EMFILE, ENOMEM, EIO.

Started under `unshare --net --mount`; needs veth and HTB of the running kernel.  What it does is a socket or a file
that it opens, a request to netlink, a file that it synchronises, renames or removes.  The lease ends all the same, and
its own retries restore the host.  The word "all" is for each step with each error, and not one in turn.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testctl_agent.daemon.lease import MAX_RETRY_S, Leases
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.attest import attest
from testctl_agent.engine.factory import AgentConfig, prepare
from testctl_agent.engine.journal import this_boot
from testctl_agent.network import ethtool, netlink
from testctl_agent.spec.types import Value

from agents.tests.engine.snapshot import differ
from agents.tests.own_host import with_eth0

VALUES: dict[str, Value] = {
    "mtu": 1400, "gro": True, "tso": False, "gro_flush": 20_000, "tcp_sack": 0, "initcwnd": 20, "cc": "reno",
    "htb_rate": 10**8, "htb_buffer": 50_000, "htb_ecn_threshold": 20_000,
}  # fmt: skip
ERRORS = (errno.EMFILE, errno.ENOMEM, errno.EIO)
MAX_TRIES = 60


class Faults:
    """Counts the steps of the code within `armed`, and lets one fail, or several in turn."""

    def __init__(self) -> None:
        self.steps, self.fail_at, self.number, self.armed_now = 0, frozenset[int](), 0, False
        sys.addaudithook(self._audited)
        self._wrap(netlink.Netlink, "_send")
        self._wrap(ethtool, "_ioctl")
        for name in ("fsync", "unlink", "replace", "ftruncate"):
            self._wrap(os, name)

    def _step(self) -> None:
        self.steps += 1
        if self.steps - 1 in self.fail_at:
            raise OSError(self.number, os.strerror(self.number))

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.armed_now and event in ("open", "socket.__new__"):
            self._step()

    def _wrap(self, where: Any, name: str) -> None:
        call: Callable[..., Any] = getattr(where, name)

        def failing(*arguments: Any, **words: Any) -> Any:
            if self.armed_now:
                self._step()
            return call(*arguments, **words)

        setattr(where, name, failing)

    @contextmanager
    def armed(self, number: int, *fail_at: int) -> Iterator[None]:
        self.steps, self.number, self.fail_at, self.armed_now = 0, number, frozenset(fail_at), True
        try:
            yield
        finally:
            self.armed_now = False


class Host:
    """Host alpha with its lease; the clock is a number."""

    def __init__(self, folder: Path) -> None:
        config = AgentConfig("alpha", "host", {"alpha": "eth0"}, folder / "work", folder / "journal")
        self.journal = folder / "journal"
        self.engine = prepare(config, this_boot()).engine
        self.now_s = 0.0
        self.leases = Leases("host alpha", self.engine.restore, "", lambda: self.now_s)

    def changed(self) -> None:
        """A lease under which everything is changed, and whose time is over."""
        token = self.leases.acquire("one who is gone", 10).token
        with self.leases.using(token, "Apply"):
            self.engine.apply([Setting("alpha", name, value) for name, value in VALUES.items()])
        self.now_s += 10

    def left_alone(self) -> int:
        """What the lease's thread does, until all is restored; how often it tried."""
        for tries in range(MAX_TRIES):
            wait_s = self.leases._wait_s()
            if wait_s is None:
                return tries
            assert wait_s <= MAX_RETRY_S
            self.now_s += wait_s
            assert self.leases.expire() or self.leases.retry()
        raise AssertionError(f"not restored: {self.leases._unrestored}")


def main() -> None:
    with_eth0()
    logging.disable(logging.CRITICAL)
    faults, failed, restores = Faults(), 0, 0
    with tempfile.TemporaryDirectory() as name:
        host = Host(Path(name))
        host.changed()
        host.left_alone()  # what is loaded at its first use is loaded
        before = attest(["eth0"])

        def restored(number: int, *fail_at: int) -> tuple[int, int]:
            """(steps of the first try and those after it, tries)"""
            host.changed()
            assert differ(before, attest(["eth0"]))
            with faults.armed(number, *fail_at):
                tries = host.left_alone()
            left = differ(before, attest(["eth0"]))
            assert not left, (errno.errorcode.get(number), fail_at, left)
            assert not host.journal.exists(), (errno.errorcode.get(number), fail_at)
            return faults.steps, tries

        steps, tries = restored(0)
        assert tries == 1
        for turn, number in enumerate(ERRORS):
            for step in range(steps) if "all" in sys.argv else range(turn, steps, len(ERRORS)):
                _, tries = restored(number, step)
                failed += tries > 1
                restores += 1
            _, tries = restored(number, *range(steps // 2, 3 * steps, 7))  # and again and again in the retries
            failed += tries > 1
            restores += 1
    assert failed > restores / 2, (failed, restores)
    print(f"{steps} steps, {restores} restores, {failed} of them tried again; all is as before")


if __name__ == "__main__":
    main()
