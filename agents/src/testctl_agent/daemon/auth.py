# SPDX-License-Identifier: Apache-2.0
"""gRPC interceptor: authenticates the caller, checks the lease, and maps messages and exceptions to gRPC's.

Nothing a peer sends is parsed before the peer is known.  A TestctlError is sent with its own text; any other
exception is a bug: its traceback goes to the log and not to the peer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.lease import Leases
from testctl_agent.daemon.protobuf import from_protobuf, to_protobuf
from testctl_agent.daemon.service import token_of
from testctl_agent.engine.refusals import BadRequest, Denied, status_of
from testctl_agent.spec.errors import TestctlError
from testctl_agent.wire.messages import Message

_log = logging.getLogger(__name__)
_CHANGING = frozenset({"Apply", "Restore", "Start", "Stop"})
"""Calls that need a lease; the end of the lease waits for them."""
_LOOKING = frozenset({"Wait", "Fetch"})
"""Calls that need a lease; the end of the lease does not wait for them."""
_DETAIL_BYTES = 2000
"""A refusal travels in a header, percent-encoded; peers take 8 KiB of headers."""


def requests() -> dict[str, type[ProtobufMessage]]:
    """The type of each method's request, as the wire has it."""
    methods = pb.DESCRIPTOR.services_by_name["Agent"].methods
    return {method.name: getattr(pb, method.input_type.name) for method in methods}


class AuthInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Runs before every method of one agent.

    who          the entity, as errors name it: "host alpha"
    controllers  common names of certificates that may call; None: everybody who can reach the socket
    leases       None: changes want no lease
    """

    def __init__(self, who: str, controllers: frozenset[str] | None = None, leases: Leases | None = None) -> None:
        self._who = who
        self._controllers = controllers
        self._leases = leases
        self._requests = requests()

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """The handler of a method with the checks around it; None for a method that does not exist."""
        handler = continuation(details)
        if handler is None:
            return None
        method = details.method.rpartition("/")[2]
        if handler.response_streaming:
            behaviour = self._stream(method, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(behaviour, None, handler.response_serializer)
        behaviour = self._single(method, handler.unary_unary)
        return grpc.unary_unary_rpc_method_handler(behaviour, None, handler.response_serializer)

    def _single(self, method: str, call: Callable[[Any, Any], Any]) -> Callable[[bytes, Any], Any]:
        def guarded(data: bytes, context: grpc.ServicerContext) -> Any:
            try:
                self._admit(context)
                request = self._parsed(method, data)
                with self._leased(method, context):
                    return to_protobuf(call(request, context))
            except Exception as error:  # noqa: BLE001 -- whatever it was, the agent lives
                failure = error
            self._refuse(context, method, failure)

        return guarded

    def _stream(self, method: str, call: Callable[[Any, Any], Iterator[Any]]) -> Callable[[bytes, Any], Iterator[Any]]:
        def guarded(data: bytes, context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                self._admit(context)
                request = self._parsed(method, data)
                with self._leased(method, context):
                    yield from map(to_protobuf, call(request, context))
                return
            except Exception as error:  # noqa: BLE001 -- whatever it was, the agent lives
                failure = error
            self._refuse(context, method, failure)

        return guarded

    def _admit(self, context: grpc.ServicerContext) -> None:
        """Check that the peer's certificate names a controller.  TLS has checked its signature and dates."""
        if self._controllers is None:
            return
        names = [name.decode(errors="replace") for name in context.auth_context().get("x509_common_name", [])]
        if len(names) != 1 or names[0] not in self._controllers:
            want, got = " or ".join(sorted(self._controllers)), ", ".join(names) or "none"
            _log.warning("%s: refused %s: its certificate is of %s", self._who, context.peer(), got)
            raise Denied(f"{self._who}: want a certificate of {want}; got {got}")

    def _parsed(self, method: str, data: bytes) -> Message:
        message = self._requests[method]()
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            want = message.DESCRIPTOR.name
            raise BadRequest(f"{self._who}: {method}: want {want}; got {len(data)} other bytes") from error
        parsed: Message = from_protobuf(message)
        return parsed

    def _leased(self, method: str, context: grpc.ServicerContext) -> AbstractContextManager[None]:
        if self._leases is not None and method in _CHANGING:
            return self._leases.using(token_of(context), method)
        if self._leases is not None and method in _LOOKING:
            self._leases.check(token_of(context), method)
        return nullcontext()

    def _refuse(self, context: grpc.ServicerContext, method: str, error: Exception) -> NoReturn:
        if isinstance(error, TestctlError):
            detail = str(error).encode(errors="replace")[:_DETAIL_BYTES].decode(errors="ignore")
            context.abort(grpc.StatusCode[status_of(error)], detail)
        _log.error("%s: %s failed", self._who, method, exc_info=error)
        context.abort(grpc.StatusCode.INTERNAL, f"{self._who}: {method}: {type(error).__name__}; its log says more")
        raise AssertionError("abort raises")
