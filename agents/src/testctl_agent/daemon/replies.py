# SPDX-License-Identifier: Apache-2.0
"""A daemon's replies as messages of daemon/agent.proto."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from testctl_agent.daemon.lease import Grant, State
from testctl_agent.wire import messages

CHUNK_BYTES = 1 << 20


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
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        while data := file.read(CHUNK_BYTES):
            digest.update(data)
            yield messages.Chunk(data=data)
    yield messages.Chunk(sha256=digest.hexdigest())
