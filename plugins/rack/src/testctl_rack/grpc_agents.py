# SPDX-License-Identifier: Apache-2.0
"""Calls of agents by gRPC, whose answers are checked."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.message import Message as ProtobufMessage
from testctl_agent.daemon import agent_pb2_grpc as rpc
from testctl_agent.spec.untrusted import words

from testctl_rack.answers import checked

MESSAGE_BYTES = 64 << 20


def message_of(error: grpc.RpcError) -> str:
    """The message of a refused call, as the agent wrote it."""
    return words(str(error.details() or error.code().name))


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
