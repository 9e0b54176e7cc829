# SPDX-License-Identifier: Apache-2.0
"""A daemon's service: leases, files to fetch, and limits of what its callers take."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from testctl_agent.daemon import LEASE_KEY, replies
from testctl_agent.daemon.boots import Boots
from testctl_agent.daemon.descriptors import Reserve
from testctl_agent.daemon.lease import Leases
from testctl_agent.engine import limits
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.refusals import LimitReached, NotSupported
from testctl_agent.engine.replies import setting
from testctl_agent.engine.service import Service
from testctl_agent.engine.state import AgentState
from testctl_agent.spec.errors import TestbedError
from testctl_agent.wire import messages


def token_of(context: Any) -> str:
    """The lease's token that came with a call; "" when none did."""
    token = dict(context.invocation_metadata() or ()).get(LEASE_KEY, "")
    return token if isinstance(token, str) else ""


class DaemonService(Service):
    """`leases` is None for an agent that gives none, whose tasks' directories lie in the working directory itself."""

    def __init__(self, state: AgentState, most: Limits | None = None) -> None:
        super().__init__(state, most)
        self._long = None if self._most.long_calls is None else threading.BoundedSemaphore(self._most.long_calls)
        self._number = 0
        self._reserve: Reserve | None = None
        self.leases: Leases | None = None

    def require_leases(self, unrestored: str = "", boots: Boots | None = None) -> Leases:
        """Require a lease for every change from now on; unrestored: parameters whose restore failed, or ""."""
        self._tasks = self._new_tasks(self._state.workdir / "lease-1")
        self._number = 1
        self._reserve = Reserve()
        self.leases = Leases(self._state.who, self._end_of_lease, unrestored, boots=boots)
        return self.leases

    def _end_of_lease(self) -> Sequence[Setting]:
        """Stop its tasks, restore its settings, remove its files.  Raises TestctlError with what was not restored."""
        assert self._reserve is not None  # there are leases
        with self._reserve.given_up():
            self._tasks.stop_all()
            try:
                return self._restored()
            finally:
                self._tasks.forget()
                self._number += 1
                self._tasks = self._new_tasks(self._state.workdir / f"lease-{self._number}")

    def Wait(self, request: messages.WaitRequest, context: Any = None) -> messages.TaskStatus:
        with self._a_long_call():
            return super().Wait(request)

    @contextmanager
    def _a_long_call(self) -> Iterator[None]:
        """Count a running task.  Raises LimitReached."""
        if self._long is not None and not self._long.acquire(blocking=False):
            raise LimitReached(
                f"{self._state.name}: want at most {self._most.long_calls} calls of Wait and Fetch at a time"
            )
        try:
            yield
        finally:
            if self._long is not None:
                self._long.release()

    def Fetch(self, request: messages.FetchRequest, context: Any = None) -> Iterator[messages.Chunk]:
        tasks = self._tasks
        if request.file not in tasks.get(request.task).files():
            what = limits.shown(request.file)
            raise TestbedError(f"{self._state.name}: task {request.task!r} has no file {what}")
        with self._a_long_call():
            yield from replies.chunks(tasks.folder / request.task / request.file)

    def _leases_given(self) -> Leases:
        if self.leases is None:
            raise NotSupported(f"{self._state.who}: gives no leases, and wants none")
        return self.leases

    def Acquire(self, request: messages.AcquireRequest, context: Any = None) -> messages.Lease:
        grant = self._leases_given().acquire(request.holder, request.lifetime_ns / 1e9, request.ticket)
        return replies.lease(grant)

    def Queue(self, request: messages.QueueRequest, context: Any = None) -> messages.QueueReply:
        return replies.queue(self._leases_given().queue(request.ticket, request.holder, request.leave, request.keep))

    def Boot(self, request: messages.BootRequest, context: Any = None) -> messages.BootReply:
        self._leases_given().boot(token_of(context), request.limit_ns / 1e9)
        return messages.BootReply()

    def Renew(self, request: messages.RenewRequest, context: Any = None) -> messages.Lease:
        return replies.lease(self._leases_given().renew(token_of(context)))

    def Release(self, request: messages.ReleaseRequest, context: Any = None) -> messages.ReleaseReply:
        restored = self._leases_given().release(token_of(context))
        return messages.ReleaseReply(restored=tuple(map(setting, restored)))

    def close(self) -> None:
        if self.leases is not None:
            self.leases.close()
        if self._reserve is not None:
            self._reserve.close()
        try:
            super().close()
        finally:
            if self.leases is not None:
                self._tasks.forget()
