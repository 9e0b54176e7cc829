# SPDX-License-Identifier: Apache-2.0
"""The life cycle of an agent daemon.

lock the journal → end what a killed agent left → restore → take back congestion controls → read keys → listen → "ready"
→ SIGTERM → no more calls → stop tasks → restore → exit
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from testctl_agent.cc import shared
from testctl_agent.daemon import boot_notes, descriptors, leftovers, tls, workdir
from testctl_agent.daemon.boots import NAME, Boots
from testctl_agent.daemon.config import THREADS, DaemonConfig
from testctl_agent.daemon.sd_notify import Watchdog, notify
from testctl_agent.daemon.server import serve
from testctl_agent.daemon.service import DaemonService
from testctl_agent.engine.factory import prepare
from testctl_agent.engine.journal import this_boot
from testctl_agent.engine.state import AgentState
from testctl_agent.spec.errors import ApplyError, TestbedError, TestctlError

_log = logging.getLogger(__name__)


def run(config: DaemonConfig) -> None:
    """Serve until SIGTERM or SIGINT.  Raises TestctlError when it can't start, or not restore at the end."""
    os.umask(0o077)
    descriptors.raise_limit()
    termination = _termination_pipe()
    agent = config.agent
    with _alone(agent.journal):
        workdir.own(agent.workdir)
        leftovers.end(agent.workdir)
        boot = this_boot()
        state = prepare(agent, boot)
        state.notes = {**state.notes, **boot_notes.notes(boot)}
        try:
            unrestored = _restored(state, config.lease)
            _swept(state.who)
            server, service = _started(config, state, unrestored)
        except BaseException:
            state.close()
            raise
        print("ready", flush=True)
        notify("READY=1")
        os.read(termination, 1)
        notify("STOPPING=1")
        server.stop(None).wait()
        service.close()
        _log.info("%s: everything is restored", state.who)


def _termination_pipe() -> int:
    """A pipe that can be read once SIGTERM or SIGINT has come.

    It is written by the handler in C: one in Python runs between two steps of the main thread, and a
    signal that comes as that begins to wait would wait with it.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


@contextmanager
def _alone(journal: Path) -> Iterator[None]:
    """Lock the journal.  Raises TestbedError if another agent has it."""
    try:
        journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise TestbedError(f"{journal.parent}: can't be made: {error.strerror}") from error
    path = journal.with_name(f"{journal.name}.lock")
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise TestbedError(f"{journal}: another agent that runs has this journal") from error
        yield


def _restored(state: AgentState, lends: bool) -> str:
    """Restore the values in the journal; returns why that failed: an agent with such an error gives no lease.

    Without leases nobody would ask whether all is restored: ApplyError instead.
    """
    try:
        if restored := state.engine.restore():
            _log.warning("%s: restored %d settings of an agent that was killed", state.who, len(restored))
    except ApplyError as error:
        if not lends:
            raise
        _log.error("%s: gives no lease before all is restored: %s", state.who, error)
        return str(error)
    return ""


def _swept(who: str) -> None:
    """Unregister the congestion controls of a killed agent; those that remain are visible in the attestation."""
    try:
        if names := shared.remove_unused():
            _log.warning("%s: took back congestion controls of an agent that was killed: %s", who, ", ".join(names))
    except (TestctlError, OSError) as error:
        _log.error("%s: congestion controls of an agent that was killed may be left: %s", who, error)


def _started(config: DaemonConfig, state: AgentState, unrestored: str) -> tuple[grpc.Server, DaemonService]:
    credentials = tls.credentials(state.who, state.name, config.tls) if config.tls else None
    service = DaemonService(state, config.limits)
    if config.lease:
        leases = service.require_leases(unrestored, Boots(config.agent.journal.with_name(NAME)))
        threading.Thread(target=leases.run, name="leases", daemon=True).start()
    else:
        threading.Thread(target=Watchdog().run, name="watchdog", daemon=True).start()
    names = frozenset(config.tls.controllers) if config.tls else None
    return serve(
        state, config.listen, THREADS, service=service, most=config.limits, credentials=credentials, controllers=names
    )
