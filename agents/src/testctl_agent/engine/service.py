# SPDX-License-Identifier: Apache-2.0
"""An agent: one engine and the tasks it runs, as the calls of wire/agent.proto, on whatever channel they come."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testctl_agent.engine import limits, replies
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.refusals import LimitReached, NotSupported
from testctl_agent.engine.state import AgentState
from testctl_agent.engine.tasks import Tasks
from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.tasks.task import Task
from testctl_agent.wire import LEASE_KEY, messages

if TYPE_CHECKING:
    from testctl_agent.engine.boots import Boots
    from testctl_agent.engine.descriptors import Reserve
    from testctl_agent.engine.lease import Leases

STOP_S = 30.0


def token_of(context: Any) -> str:
    """The lease's token that came with a call; "" when none did."""
    found = dict(context.invocation_metadata() or ()).get(LEASE_KEY, "")
    return found if isinstance(found, str) else ""


class Service:
    """The calls of wire/agent.proto; errors are raised, and what is between it and its caller makes refusals of them.

    One change at a time: Apply and Restore exclude each other.  `leases` is None for an agent
    that gives none, whose tasks' directories lie in the working directory itself.
    """

    def __init__(self, state: AgentState, most: Limits | None = None) -> None:
        self._state = state
        self._most = most or Limits()
        self._changing = threading.Lock()
        self._long = None if self._most.long_calls is None else threading.BoundedSemaphore(self._most.long_calls)
        self._number = 0
        self._reserve: Reserve | None = None
        self.leases: Leases | None = None
        self._tasks = self._new_tasks(state.workdir)

    def _new_tasks(self, folder: Path) -> Tasks:
        devices = self._state.devices if self._most.tasks is not None else ()
        return Tasks(self._state.name, self._state.new_task, folder, self._most, devices)

    def require_leases(self, unrestored: str = "", boots: Boots | None = None) -> Leases:
        """Require a lease for every change from now on; unrestored: parameters whose restore failed, or ""."""
        from testctl_agent.engine.descriptors import Reserve  # a lab's agents give no leases, and start faster
        from testctl_agent.engine.lease import Leases

        self._tasks = self._new_tasks(self._state.workdir / "lease-1")
        self._number = 1
        self._reserve = Reserve()
        self.leases = Leases(self._state.who, self._end_of_lease, unrestored, boots=boots)
        return self.leases

    def _end_of_lease(self) -> Sequence[Setting]:
        """Nothing is left of a lease: tasks, settings, files.  Raises TestctlError with what was not restored."""
        assert self._reserve is not None  # there are leases
        with self._reserve.given_up():
            self._tasks.stop_all()
            try:
                return self._restored()
            finally:
                self._tasks.forget()
                self._number += 1
                self._tasks = self._new_tasks(self._state.workdir / f"lease-{self._number}")

    def _restored(self) -> Sequence[Setting]:
        with self._changing:
            return self._state.engine.restore()

    def Describe(self, request: messages.DescribeRequest, context: Any = None) -> messages.Description:
        engine = self._state.engine
        wanted = set(request.parameters)
        capabilities = []
        for entity in engine.entities.values():
            for parameter in self._state.parameters(entity.kind):
                if not wanted or parameter in wanted:
                    capabilities.append(replies.capability(engine, entity.name, parameter))
        for collector, missing in self._state.collectors(self._state.kind, wanted).items():
            capabilities.append(messages.Capability(parameter=collector, entity=self._state.name, missing=missing))
        return messages.Description(
            name=self._state.name,
            kind=self._state.kind,
            version=self._state.version(),
            kernel=os.uname().release,
            capabilities=capabilities,
            notes=dict(self._state.notes),
        )

    def Attest(self, request: messages.AttestRequest, context: Any = None) -> messages.Attestation:
        from testctl_agent.engine.attest import attest  # which a lab never asks for

        return messages.Attestation(facts=attest(self._state.devices))

    def Apply(self, request: messages.ApplyRequest, context: Any = None) -> messages.ApplyReply:
        settings = [Setting(s.entity, s.parameter, s.value) for s in request.settings]
        for one in settings:
            limits.setting(self._state.name, one.entity, one.parameter, one.value)
        with self._changing:
            before, after = self._state.engine.apply(settings)
        return messages.ApplyReply(before=tuple(map(replies.setting, before)), after=tuple(map(replies.setting, after)))

    def Restore(self, request: messages.RestoreRequest, context: Any = None) -> messages.RestoreReply:
        restored = self._restored()
        return messages.RestoreReply(restored=tuple(map(replies.setting, restored)))

    def Start(self, request: messages.StartRequest, context: Any = None) -> messages.StartReply:
        task = self._tasks.start(request.task, request.kind, request.name, request.options)
        return messages.StartReply(files=task.files())

    def _status(self, task: Task) -> messages.TaskStatus:
        status = messages.TaskStatus(ended=task.poll(), files=task.files())
        if status.ended:
            try:
                status.result = json.dumps(task.result())
                status.ok = True
            except TestctlError as error:
                status.error = str(error)
        return status

    def Wait(self, request: messages.WaitRequest, context: Any = None) -> messages.TaskStatus:
        tasks = self._tasks
        with self._a_long_call():
            tasks.get(request.task).wait(min(max(request.timeout_ns, 0), limits.WAIT_NS) / 1e9)
        with tasks.alone(request.task) as task:
            return self._status(task)

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

    def Stop(self, request: messages.StopRequest, context: Any = None) -> messages.TaskStatus:
        with self._tasks.alone(request.task) as task:
            task.stop()
            task.wait(STOP_S)
            return self._status(task)

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
        return messages.ReleaseReply(restored=tuple(map(replies.setting, restored)))

    def close(self) -> None:
        """Stop what still runs, restore what is still changed, and take down the back end."""
        if self.leases is not None:
            self.leases.close()
        if self._reserve is not None:
            self._reserve.close()
        self._tasks.stop_all()
        try:
            self._restored()
        finally:
            if self.leases is not None:
                self._tasks.forget()
            self._state.close()
