# SPDX-License-Identifier: Apache-2.0
"""The agents of a point by their gRPC channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.message import Message as ProtobufMessage
from testctl.testbeds.agents import CALL_S
from testctl.testbeds.at_once import AtOnce
from testctl_agent.daemon import agent_pb2_grpc as rpc
from testctl_agent.daemon.protobuf import from_protobuf, to_protobuf
from testctl_agent.spec.errors import TestbedError, Unavailable
from testctl_agent.spec.untrusted import words
from testctl_agent.wire.messages import Message

from testctl_rack.answers import checked

MESSAGE_BYTES = 64 << 20


def said_by(error: grpc.RpcError) -> str:
    """The message of a refused call; an agent's own words."""
    return words(str(error.details() or error.code().name))


@contextmanager
def _words_of(name: str) -> Iterator[None]:
    """A refused call as a TestbedError with the agent's message."""
    try:
        yield
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise Unavailable(said_by(error)) from error
        raise TestbedError(f"agent {name}: {said_by(error)}") from error


class GrpcAgents(AtOnce):
    """channels: by the plan's name of the entity."""

    def __init__(self, channels: Mapping[str, grpc.Channel]) -> None:
        super().__init__(channels)
        self._channels = channels
        self.stubs = {name: new_stub(channel) for name, channel in channels.items()}

    def call(self, name: str, method: str, request: Message, timeout_s: float = CALL_S) -> Any:
        with _words_of(name):
            return from_protobuf(getattr(self.stubs[name], method)(to_protobuf(request), timeout=timeout_s))

    def close(self) -> None:
        super().close()
        for channel in self._channels.values():
            channel.close()


class _Call:
    """A method of an agent, whose answers are checked."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __call__(self, request: Any, **how: Any) -> Any:
        answer = self._call(request, **how)
        return checked(answer) if isinstance(answer, ProtobufMessage) else map(checked, answer)

    def future(self, request: Any, **how: Any) -> _Future:
        return _Future(self._call.future(request, **how))


class _Future:
    def __init__(self, future: Any) -> None:
        self._future = future
        self.add_done_callback = future.add_done_callback

    def result(self) -> Any:
        return checked(self._future.result())


class Stub:
    """The methods of agent.proto.  An answer of a wrong shape raises grpc.RpcError, as a call that failed does."""

    def __init__(self, channel: grpc.Channel) -> None:
        stub: Any = rpc.AgentStub
        self._calls = {name: _Call(call) for name, call in vars(stub(channel)).items()}

    def __getattr__(self, method: str) -> Any:
        return self._calls[method]


def new_stub(channel: grpc.Channel) -> Any:
    return Stub(channel)
