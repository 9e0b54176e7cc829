# SPDX-License-Identifier: Apache-2.0
"""An agent's replies as messages of wire/agent.proto."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.spec.errors import TestctlError
from testctl_agent.wire import messages
from testctl_agent.wire.messages import plain

if TYPE_CHECKING:
    from testctl_agent.engine.lease import Grant, State

CHUNK_BYTES = 1 << 20


def setting(setting: Setting) -> messages.Setting:
    """A parameter and its value."""
    return messages.Setting(entity=setting.entity, parameter=setting.parameter, value=plain(setting.value))


def capability(engine: Engine, entity: str, parameter: str) -> messages.Capability:
    """What a parameter is, or why it can't be set; one that can't be read can't be set."""
    missing = engine.unavailable(entity, parameter)
    try:
        value = None if missing else plain(engine.read(entity, parameter))
    except (TestctlError, OSError) as error:
        missing, value = str(error), None
    return messages.Capability(parameter=parameter, entity=entity, missing=missing, value=value)


def lease(grant: Grant) -> messages.Lease:
    """A lease, for its holder: with the token, and this host's clock."""
    lifetime_ns = int(grant.lifetime_s * 1e9)
    return messages.Lease(token=grant.token, holder=grant.holder, lifetime_ns=lifetime_ns, time_ns=time.time_ns())


def queue(state: State) -> messages.QueueReply:
    """Who has the lease, who waits, and how many are before the one that asks."""
    return messages.QueueReply(
        before=state.before,
        leased_to=state.leased_to,
        leased_ns=int(state.leased_s * 1e9),
        left_ns=int(state.left_s * 1e9),
        places=tuple(messages.QueuePlace(holder=holder, since_ns=int(s * 1e9)) for holder, s in state.places),
    )


def chunks(path: Path) -> Iterator[messages.Chunk]:
    """A file's bytes, then their digest."""
    import hashlib  # which a lab has no use for

    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        while data := file.read(CHUNK_BYTES):
            digest.update(data)
            yield messages.Chunk(data=data)
    yield messages.Chunk(sha256=digest.hexdigest())
