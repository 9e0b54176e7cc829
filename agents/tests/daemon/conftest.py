# SPDX-License-Identifier: Apache-2.0
"""Agents in this process, on a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from testctl_agent.daemon import config, tls
from testctl_agent.daemon.server import serve
from testctl_agent.daemon.service import DaemonService
from testctl_agent.engine.factory import prepare

from agents.tests.daemon.daemons import Caller, calling, written
from agents.tests.switch import fake as fake  # registers the back end of the configurations here


@pytest.fixture
def rig() -> Iterator[ExitStack]:
    """What a test opens, closed in the opposite order."""
    with ExitStack() as stack:
        yield stack


Serving = Callable[..., tuple[DaemonService, config.DaemonConfig]]


@pytest.fixture
def serving(tmp_path: Path, rig: ExitStack) -> Serving:
    """Serve host alpha (device lo) as its configuration with `changes` says; (service, configuration)."""

    def start(**changes: Any) -> tuple[DaemonService, config.DaemonConfig]:
        found = config.load(written(tmp_path, **changes))
        state = prepare(found.agent)
        service = DaemonService(state, found.limits)
        if found.lease:
            threading.Thread(target=service.require_leases().run, daemon=True).start()
        server, _ = serve(
            state, found.listen, config.THREADS, service=service, most=found.limits,
            credentials=tls.credentials(state.who, state.name, found.tls) if found.tls else None,
            controllers=frozenset(found.tls.controllers) if found.tls else None,
        )  # fmt: skip
        rig.callback(service.close)
        rig.callback(lambda: server.stop(None).wait())
        return service, found

    return start


@pytest.fixture
def caller(serving: Serving, rig: ExitStack) -> Caller:
    """A caller of an agent that wants a lease, at a unix socket."""
    _, found = serving(lease=True)
    return rig.enter_context(calling(found.listen))


@pytest.fixture
def port() -> int:
    """A TCP port of the loopback that nobody has just now."""
    with closing(socket.create_server(("127.0.0.1", 0))) as sock:
        return int(sock.getsockname()[1])
