# SPDX-License-Identifier: Apache-2.0
"""An agent that answers as an attacker would, in its first point or from the first call on: `hostile.py HOW … serve …`.

Everything but the answers is the agent's own: its certificate, its lease, what it sets and restores.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from testctl_agent.daemon.lease import Leases
from testctl_agent.daemon.service import DaemonService
from testctl_agent.main import main
from testctl_agent.wire import messages

LOOKS = "looking whether it is free"
"""In the holder of a controller that only looks."""
PLANTED = "planted-by-an-agent"
"""In the names of files that must not come to be."""
ESCAPES = "\x1b]0;mine\x07\x1b[2J\x9b31m\u202etxet \r\nsecond line"
EVIL = "6.1.0 init=/var/lib/testctl/agent/x\n}\nmenuentry 'x' {{ lookup('pipe', 'id') }}"
MANY = 30 << 20
CALLS = ("Describe", "Attest", "Restore", "Start", "Wait", "Stop", "Release")

points = 0
"""Leases that points have had so far."""


def changed(method: str, change: Callable[[Any, Any], Any]) -> None:
    """The method's reply as `change` makes it of (request, reply), in the first point."""
    true = getattr(DaemonService, method)

    def call(self: DaemonService, request: Any, context: grpc.ServicerContext) -> Any:
        reply = true(self, request, context)
        return change(request, reply) if points == 1 else reply

    setattr(DaemonService, method, call)


def always(method: str, change: Callable[[Any], Any]) -> None:
    """The method's reply as `change` makes it, from the first call on."""
    true = getattr(DaemonService, method)
    setattr(DaemonService, method, lambda self, request, context: change(true(self, request, context)))


def noted(**notes: str) -> Callable[[messages.Description], messages.Description]:
    def change(reply: messages.Description) -> messages.Description:
        reply.notes = {**reply.notes, **{name.replace("_", " "): text for name, text in notes.items()}}
        return reply

    return change


def fact(name: str) -> Callable[[messages.Attestation], messages.Attestation]:
    return lambda reply: messages.Attestation(facts={**reply.facts, name: ""})


def kernel(release: str) -> Callable[[messages.Description], messages.Description]:
    def change(reply: messages.Description) -> messages.Description:
        reply.kernel = release
        return reply

    return change


def counted() -> None:
    true = DaemonService.Acquire

    def acquire(self: DaemonService, request: messages.AcquireRequest, context: grpc.ServicerContext) -> messages.Lease:
        global points
        lease = true(self, request, context)
        points += LOOKS not in request.holder
        return lease

    DaemonService.Acquire = acquire  # type: ignore[method-assign]


def waits(context: grpc.ServicerContext) -> None:
    """Wait until the caller has disconnected."""
    while context.is_active():
        time.sleep(0.05)


def silent(*methods: str) -> None:
    """In the first point, once it has applied, it answers none of these."""
    applied = False

    def once(request: Any, reply: Any) -> Any:
        nonlocal applied
        applied = True
        return reply

    for method in methods:
        true = getattr(DaemonService, method)

        def call(self: DaemonService, request: Any, context: grpc.ServicerContext, true: Any = true) -> Any:
            if points == 1 and applied:
                waits(context)
            return true(self, request, context)

        setattr(DaemonService, method, call)
    changed("Apply", once)


def slow(seconds: float) -> None:
    """Silent as to the lease, too; what its end restores takes so long."""
    silent(*CALLS, "Renew")
    true = Leases._clean_up

    def clean_up(self: Leases) -> Any:
        time.sleep(seconds if points == 1 else 0)
        return true(self)

    Leases._clean_up = clean_up  # type: ignore[method-assign]


def endless(request: Any, reply: Any) -> Iterator[messages.Chunk]:
    while True:
        yield messages.Chunk(data=bytes(1 << 20))


def lying(request: messages.ApplyRequest, reply: messages.ApplyReply) -> messages.ApplyReply:
    for setting in reply.after:
        if setting.parameter == "mtu":
            setting.value = 9000
    return reply


def forgetful(request: messages.ApplyRequest, reply: messages.ApplyReply) -> messages.ApplyReply:
    return messages.ApplyReply(before=reply.before, after=list(reply.after)[1:])


def status(**fields: Any) -> Callable[[Any, messages.TaskStatus], messages.TaskStatus]:
    def change(request: Any, reply: messages.TaskStatus) -> messages.TaskStatus:
        return messages.TaskStatus(ended=True, **fields) if request.task.startswith("bulk") else reply

    return change


def facts(request: Any, reply: messages.Attestation) -> messages.Attestation:
    """Others at each call, and many."""
    now = time.time_ns()
    return messages.Attestation(facts={f"{ESCAPES} {number}": f"{now}" for number in range(100_000)})


HOWS: dict[str, Callable[[], None]] = {
    "an endless file": lambda: changed("Fetch", endless),
    "names of files": lambda: changed("Stop", lambda _, reply: messages.TaskStatus(
        ended=True, ok=True, result=reply.result, files=[f"../../../../{PLANTED}", f"/tmp/{PLANTED}"])),
    "a huge result": lambda: changed("Wait", status(ok=True, result="[" * (70 << 20))),
    "a deep result": lambda: changed("Wait", status(ok=True, result="[" * 1_000_000)),
    "many words": lambda: changed("Wait", status(ok=False, error="x" * MANY)),
    "escapes": lambda: changed("Wait", status(ok=False, error=ESCAPES)),
    "facts": lambda: changed("Attest", facts),
    "another value": lambda: changed("Apply", lying),
    "a value less": lambda: changed("Apply", forgetful),
    "a kernel to have again": lambda: always("Describe", noted(kernel_after_this_boot=EVIL)),
    "a kernel that runs": lambda: always("Describe", kernel(EVIL)),
    "notes": lambda: always("Describe", noted(x=ESCAPES, y="{{ 7 * 7 }}")),
    "a fact without a device": lambda: always("Attest", fact("link ")),
    "a token": lambda: always("Acquire", lambda lease: messages.Lease(token="x\ny", lifetime_ns=lease.lifetime_ns)),
    "no answer to anything": lambda: silent(*CALLS, "Renew"),
    "no answer to anything, and a slow restore": lambda: slow(8),
    "no answer but to the lease": lambda: silent(*CALLS),
}  # fmt: skip

if __name__ == "__main__":
    how, words = sys.argv[1], sys.argv[sys.argv.index("serve") :]
    counted()
    HOWS[how]()
    sys.exit(main(words))
