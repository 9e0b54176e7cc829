# SPDX-License-Identifier: Apache-2.0
"""The errors of refused calls, and the name of the gRPC status of each."""

from __future__ import annotations

from testctl_agent.spec.errors import TestbedError, TestctlError, Unavailable


class Refusal(TestbedError):
    """A call that is refused before anything is touched; a subclass has the status."""

    status = "FAILED_PRECONDITION"


class Denied(Refusal):
    """The peer is not one that may call."""

    status = "PERMISSION_DENIED"


class BadRequest(Refusal):
    """The message is none, or names what can't be."""

    status = "INVALID_ARGUMENT"


class LimitReached(Refusal):
    """A limit of the agent is reached."""

    status = "RESOURCE_EXHAUSTED"


class HeldByOther(Refusal):
    """Another holder has the lease; the same call may be tried again later."""

    status = "ABORTED"


class NotSupported(Refusal):
    """This agent does not do that at all."""

    status = "UNIMPLEMENTED"


def status_of(error: TestctlError) -> str:
    """The name of the status that an error travels with."""
    if isinstance(error, Unavailable):
        return NotSupported.status
    return error.status if isinstance(error, Refusal) else Refusal.status
