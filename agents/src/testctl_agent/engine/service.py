# SPDX-License-Identifier: Apache-2.0
"""An agent: one engine and the tasks it runs, as the calls of daemon/agent.proto, on whatever channel they come."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testctl_agent.engine import limits, replies
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.state import AgentState
from testctl_agent.engine.tasks import Tasks
from testctl_agent.spec.errors import TestctlError
from testctl_agent.tasks.task import Task
from testctl_agent.wire import messages

STOP_S = 30.0


class Service:
    """The calls of daemon/agent.proto; errors are raised, and the channel turns them into refusals.

    One change at a time: Apply and Restore exclude each other.  A daemon adds leases (daemon/service.py).
    """

    def __init__(self, state: AgentState, most: Limits | None = None) -> None:
        self._state = state
        self._most = most or Limits()
        self._changing = threading.Lock()
        self._tasks = self._new_tasks(state.workdir)

    def _new_tasks(self, folder: Path) -> Tasks:
        devices = self._state.devices if self._most.tasks is not None else ()
        return Tasks(self._state.name, self._state.new_task, folder, self._most, devices)

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
        for setting in settings:
            limits.setting(self._state.name, setting.entity, setting.parameter, setting.value)
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
        tasks.get(request.task).wait(min(max(request.timeout_ns, 0), limits.WAIT_NS) / 1e9)
        with tasks.alone(request.task) as task:
            return self._status(task)

    def Stop(self, request: messages.StopRequest, context: Any = None) -> messages.TaskStatus:
        with self._tasks.alone(request.task) as task:
            task.stop()
            task.wait(STOP_S)
            return self._status(task)

    def close(self) -> None:
        """Stop running tasks, restore changed values, and close the back end."""
        self._tasks.stop_all()
        try:
            self._restored()
        finally:
            self._state.close()
