# SPDX-License-Identifier: Apache-2.0
"""An agent: the gRPC service around one engine and the tasks it runs."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from testctl_agent.engine import limits, messages
from testctl_agent.engine.apply import Setting
from testctl_agent.engine.attest import attest
from testctl_agent.engine.auth import AuthInterceptor, token_of
from testctl_agent.engine.descriptors import Reserve
from testctl_agent.engine.grpc_errors import LimitReached, NotSupported
from testctl_agent.engine.lease import Leases
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.state import AgentState
from testctl_agent.engine.tasks import Tasks
from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.tasks.task import Task
from testctl_agent.wire import agent_pb2 as pb
from testctl_agent.wire import agent_pb2_grpc as rpc
from testctl_agent.wire.values import from_wire, options_from_wire

STOP_S = 30.0
_FAR = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
)
"""A peer on another machine may vanish without closing its connection, which must not be kept for ever."""
CONNECTIONS, HANDSHAKE_S = 128, 5
_BOUNDED = (
    ("grpc.max_allowed_incoming_connections", CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_S * 1000),
)
"""Of an address that strangers reach: each connection has a descriptor, and a restore needs some (descriptors.py)."""


class Service(rpc.AgentServicer):
    """The calls of wire/agent.proto; errors are raised, and AuthInterceptor makes refusals of them.

    One change at a time: Apply and Restore exclude each other.  `leases` is None for an agent
    that gives none, whose tasks' directories lie in the working directory itself.
    """

    def __init__(self, state: AgentState, most: Limits | None = None) -> None:
        self._state = state
        self._most = most or Limits()
        self._changing = threading.Lock()
        self._long = None if self._most.long_calls is None else threading.BoundedSemaphore(self._most.long_calls)
        self._number = 0
        self._reserve = Reserve(0)
        self.leases: Leases | None = None
        self._tasks = self._new_tasks(state.workdir)

    def _new_tasks(self, folder: Path) -> Tasks:
        devices = self._state.devices if self._most.tasks is not None else ()
        return Tasks(self._state.name, self._state.new_task, folder, self._most, devices)

    def require_leases(self, unrestored: str = "") -> Leases:
        """Require a lease for every change from now on; unrestored: parameters whose restore failed, or ""."""
        self._tasks = self._new_tasks(self._state.workdir / "lease-1")
        self._number = 1
        self._reserve = Reserve()
        self.leases = Leases(self._state.who, self._end_of_lease, unrestored)
        return self.leases

    def _end_of_lease(self) -> Sequence[Setting]:
        """Nothing is left of a lease: tasks, settings, files.  Raises TestctlError with what was not restored."""
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

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.Description:
        engine = self._state.engine
        capabilities = []
        for entity in engine.entities.values():
            for parameter in self._state.parameters(entity.kind):
                capabilities.append(messages.capability(engine, entity.name, parameter))
        for collector, missing in self._state.collectors(self._state.kind).items():
            capabilities.append(pb.Capability(parameter=collector, entity=self._state.name, missing=missing))
        return pb.Description(
            name=self._state.name,
            kind=self._state.kind,
            version=self._state.version(),
            kernel=platform.release(),
            capabilities=capabilities,
            notes=dict(self._state.notes),
        )

    def Attest(self, request: pb.AttestRequest, context: grpc.ServicerContext) -> pb.Attestation:
        return pb.Attestation(facts=attest(self._state.devices))

    def Apply(self, request: pb.ApplyRequest, context: grpc.ServicerContext) -> pb.ApplyReply:
        settings = [Setting(s.entity, s.parameter, from_wire(s.value)) for s in request.settings]
        for one in settings:
            limits.setting(self._state.name, one.entity, one.parameter, one.value)
        with self._changing:
            before, after = self._state.engine.apply(settings)
        return pb.ApplyReply(before=map(messages.setting, before), after=map(messages.setting, after))

    def Restore(self, request: pb.RestoreRequest, context: grpc.ServicerContext) -> pb.RestoreReply:
        restored = self._restored()
        return pb.RestoreReply(restored=map(messages.setting, restored))

    def Start(self, request: pb.StartRequest, context: grpc.ServicerContext) -> pb.StartReply:
        task = self._tasks.start(request.task, request.kind, request.name, options_from_wire(request.options))
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

    def Stop(self, request: pb.StopRequest, context: grpc.ServicerContext) -> pb.TaskStatus:
        with self._tasks.alone(request.task) as task:
            task.stop()
            task.wait(STOP_S)
            return self._status(task)

    def Fetch(self, request: pb.FetchRequest, context: grpc.ServicerContext) -> Iterator[pb.Chunk]:
        tasks = self._tasks
        if request.file not in tasks.get(request.task).files():
            what = limits.shown(request.file)
            raise TestbedError(f"{self._state.name}: task {request.task!r} has no file {what}")
        with self._a_long_call():
            yield from messages.chunks(tasks.folder / request.task / request.file)

    def _leases_given(self) -> Leases:
        if self.leases is None:
            raise NotSupported(f"{self._state.who}: gives no leases, and wants none")
        return self.leases

    def Acquire(self, request: pb.AcquireRequest, context: grpc.ServicerContext) -> pb.Lease:
        return messages.lease(self._leases_given().acquire(request.holder, request.lifetime_ns / 1e9))

    def Renew(self, request: pb.RenewRequest, context: grpc.ServicerContext) -> pb.Lease:
        return messages.lease(self._leases_given().renew(token_of(context)))

    def Release(self, request: pb.ReleaseRequest, context: grpc.ServicerContext) -> pb.ReleaseReply:
        restored = self._leases_given().release(token_of(context))
        return pb.ReleaseReply(restored=map(messages.setting, restored))

    def close(self) -> None:
        """Stop what still runs, restore what is still changed, and take down the back end."""
        if self.leases is not None:
            self.leases.close()
        self._reserve.close()
        self._tasks.stop_all()
        try:
            self._restored()
        finally:
            if self.leases is not None:
                self._tasks.forget()
            self._state.close()


def serve(
    state: AgentState,
    address: str,
    threads: int = 8,
    *,
    service: Service | None = None,
    most: Limits | None = None,
    credentials: grpc.ServerCredentials | None = None,
    controllers: frozenset[str] | None = None,
) -> tuple[grpc.Server, Service]:
    """A started server at a gRPC address such as unix:/run/testctl/sender.sock.

    service      a service with leases; without it the agent has no leases
    credentials  of TLS; with them `controllers` are the names of those who may call
    """
    service = service or Service(state, most)
    options = [
        ("grpc.max_receive_message_length", (most or Limits()).message_bytes),
        ("grpc.so_reuseport", 0),
        *((*_FAR, *_BOUNDED) if credentials else ()),
    ]
    interceptor = AuthInterceptor(state.who, controllers, service.leases)
    server = grpc.server(ThreadPoolExecutor(threads), interceptors=[interceptor], options=options)
    rpc.add_AgentServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    listen(state.who, server, address, credentials)
    server.start()
    return server, service


def listen(who: str, server: grpc.Server, address: str, credentials: grpc.ServerCredentials | None) -> None:
    """Bind an address.  Raises TestbedError."""
    try:
        bound = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    except RuntimeError as error:
        raise TestbedError(f"{who}: can't listen at {address}: {error}") from error
    if bound == 0:
        raise TestbedError(f"{who}: can't listen at {address}")
