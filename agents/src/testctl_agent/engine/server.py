# SPDX-License-Identifier: Apache-2.0
"""An agent: the gRPC service around one engine and the tasks it runs."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import grpc

from testctl_agent import __version__
from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.spec.errors import TestbedError, TestctlError, Unavailable
from testctl_agent.spec.types import Value
from testctl_agent.task import Task
from testctl_agent.wire import agent_pb2 as pb
from testctl_agent.wire import agent_pb2_grpc as rpc
from testctl_agent.wire.values import from_wire, options_from_wire, to_wire

CHUNK_BYTES = 1 << 20
MESSAGE_BYTES = 8 << 20
STOP_S = 30.0

TaskFactory = Callable[[str, str, Mapping[str, Value], Path], Task]
"""(kind, name, options, working directory) → a task that has not started."""


@dataclass
class AgentState:
    """What a service serves.

    parameters  for Describe: every parameter each entity could have
    collectors  for Describe: collectors that this entity may not have, and why it has not ("": it has)
    workdir     where tasks write; a task's files lie in a directory of its name
    close       called last, when everything is restored
    """

    name: str
    kind: str
    engine: Engine
    workdir: Path
    new_task: TaskFactory
    parameters: Callable[[str], list[str]]
    notes: Mapping[str, str] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None
    collectors: Callable[[str], Mapping[str, str]] = lambda kind: {}


def _setting(setting: Setting) -> pb.Setting:
    return pb.Setting(entity=setting.entity, parameter=setting.parameter, value=to_wire(setting.value))


class Service(rpc.AgentServicer):
    """The calls of wire/agent.proto.

    A TestctlError becomes FAILED_PRECONDITION with its own words (Unavailable: UNIMPLEMENTED);
    anything else is a bug and becomes INTERNAL.  One change at a time: Apply and Restore exclude each other.
    """

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._changing = threading.Lock()
        self._tasks: dict[str, Task] = {}

    def _refuse(self, context: grpc.ServicerContext, error: TestctlError) -> NoReturn:
        can_not = isinstance(error, Unavailable)
        context.abort(grpc.StatusCode.UNIMPLEMENTED if can_not else grpc.StatusCode.FAILED_PRECONDITION, str(error))
        raise AssertionError("abort raises")

    def _task(self, name: str) -> Task:
        task = self._tasks.get(name)
        if task is None:
            have = ", ".join(sorted(self._tasks)) or "none"
            raise TestbedError(f"{self._state.name}: no task {name!r}; there are: {have}")
        return task

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.Description:
        engine = self._state.engine
        capabilities = []
        for entity in engine.entities.values():
            for parameter in self._state.parameters(entity.kind):
                missing = engine.missing(entity.name, parameter)
                value = None if missing else to_wire(engine.read(entity.name, parameter))
                capabilities.append(
                    pb.Capability(parameter=parameter, entity=entity.name, missing=missing, value=value)
                )
        for collector, missing in self._state.collectors(self._state.kind).items():
            capabilities.append(pb.Capability(parameter=collector, entity=self._state.name, missing=missing))
        return pb.Description(
            name=self._state.name,
            kind=self._state.kind,
            version=__version__,
            kernel=platform.release(),
            capabilities=capabilities,
            notes=dict(self._state.notes),
        )

    def Apply(self, request: pb.ApplyRequest, context: grpc.ServicerContext) -> pb.ApplyReply:
        settings = [Setting(s.entity, s.parameter, from_wire(s.value)) for s in request.settings]
        try:
            with self._changing:
                before, after = self._state.engine.apply(settings)
        except TestctlError as error:
            self._refuse(context, error)
        return pb.ApplyReply(before=map(_setting, before), after=map(_setting, after))

    def Restore(self, request: pb.RestoreRequest, context: grpc.ServicerContext) -> pb.RestoreReply:
        try:
            with self._changing:
                restored = self._state.engine.restore()
        except TestctlError as error:
            self._refuse(context, error)
        return pb.RestoreReply(restored=map(_setting, restored))

    def Start(self, request: pb.StartRequest, context: grpc.ServicerContext) -> pb.StartReply:
        state = self._state
        try:
            if not request.task.replace("-", "_").isidentifier():
                raise TestbedError(f"{state.name}: a task's name is a word; got {request.task!r}")
            if request.task in self._tasks:
                raise TestbedError(f"{state.name}: task {request.task!r} was started before")
            workdir = state.workdir / request.task
            workdir.mkdir(parents=True, exist_ok=True)
            task = state.new_task(request.kind, request.name, options_from_wire(request.options), workdir)
            self._tasks[request.task] = task
            task.start()
        except TestctlError as error:
            self._refuse(context, error)
        return pb.StartReply(files=task.files())

    def _status(self, task: Task) -> pb.TaskStatus:
        status = pb.TaskStatus(ended=task.poll(), files=task.files())
        if status.ended:
            try:
                status.result = json.dumps(task.result())
                status.ok = True
            except TestctlError as error:
                status.error = str(error)
        return status

    def Wait(self, request: pb.WaitRequest, context: grpc.ServicerContext) -> pb.TaskStatus:
        try:
            task = self._task(request.task)
            task.wait(request.timeout_ns / 1e9)
            return self._status(task)
        except TestctlError as error:
            self._refuse(context, error)

    def Stop(self, request: pb.StopRequest, context: grpc.ServicerContext) -> pb.TaskStatus:
        try:
            task = self._task(request.task)
            task.stop()
            task.wait(STOP_S)
            return self._status(task)
        except TestctlError as error:
            self._refuse(context, error)

    def Fetch(self, request: pb.FetchRequest, context: grpc.ServicerContext) -> Iterator[pb.Chunk]:
        try:
            if request.file not in self._task(request.task).files():
                raise TestbedError(f"{self._state.name}: task {request.task!r} has no file {request.file!r}")
        except TestctlError as error:
            self._refuse(context, error)
        digest = hashlib.sha256()
        with (self._state.workdir / request.task / request.file).open("rb") as file:
            while data := file.read(CHUNK_BYTES):
                digest.update(data)
                yield pb.Chunk(data=data)
        yield pb.Chunk(sha256=digest.hexdigest())

    def close(self) -> None:
        """Stop what still runs, restore what is still changed, and take down the back end."""
        for task in self._tasks.values():
            if not task.poll():
                task.stop()
        try:
            self._state.engine.restore()
        finally:
            self._state.close()


def serve(state: AgentState, address: str, threads: int = 8) -> tuple[grpc.Server, Service]:
    """A started server at a gRPC address such as unix:/run/testctl/sender.sock."""
    service = Service(state)
    options = [
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.server(ThreadPoolExecutor(threads), options=options)
    rpc.add_AgentServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    if server.add_insecure_port(address) == 0:
        raise TestbedError(f"agent {state.name}: can't listen at {address}")
    server.start()
    return server, service
