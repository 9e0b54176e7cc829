# SPDX-License-Identifier: Apache-2.0
"""The errors of refused calls, and the gRPC status of each."""

from __future__ import annotations

import grpc

from testctl_agent.spec.errors import TestbedError, TestctlError, Unavailable


class Refusal(TestbedError):
    """A call that is refused before anything is touched; a subclass has the status."""

    status = grpc.StatusCode.FAILED_PRECONDITION


class Denied(Refusal):
    """The peer is not one that may call."""

    status = grpc.StatusCode.PERMISSION_DENIED


class BadRequest(Refusal):
    """The message is none, or names what can't be."""

    status = grpc.StatusCode.INVALID_ARGUMENT


class LimitReached(Refusal):
    """A limit of the agent is reached."""

    status = grpc.StatusCode.RESOURCE_EXHAUSTED


class HeldByOther(Refusal):
    """Another holder has the lease; the same call may be tried again later."""

    status = grpc.StatusCode.ABORTED


class NotSupported(Refusal):
    """This agent does not do that at all."""

    status = grpc.StatusCode.UNIMPLEMENTED


def status_of(error: TestctlError) -> grpc.StatusCode:
    """The status an error travels with."""
    if isinstance(error, Unavailable):
        return grpc.StatusCode.UNIMPLEMENTED
    return error.status if isinstance(error, Refusal) else grpc.StatusCode.FAILED_PRECONDITION
