# SPDX-License-Identifier: Apache-2.0
"""An agent at a gRPC address."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc

from testctl_agent.daemon import agent_pb2_grpc as rpc
from testctl_agent.daemon.auth import AuthInterceptor
from testctl_agent.daemon.service import DaemonService
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.state import AgentState
from testctl_agent.spec.errors import TestbedError

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


def serve(
    state: AgentState,
    address: str,
    threads: int = 8,
    *,
    service: DaemonService | None = None,
    most: Limits | None = None,
    credentials: grpc.ServerCredentials | None = None,
    controllers: frozenset[str] | None = None,
) -> tuple[grpc.Server, DaemonService]:
    """A started server at a gRPC address such as unix:/run/testctl/sender.sock.

    service      a service with leases; without it the agent has no leases
    credentials  of TLS; with them `controllers` are the names of those who may call
    """
    service = service or DaemonService(state, most)
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
