# SPDX-License-Identifier: Apache-2.0
"""The agents of a point, on whatever channel: one call, or one on each of them.

Light to import: in the lab this runs inside the virtual time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from testctl_agent.spec.errors import TestbedError, Unavailable
from testctl_agent.wire.messages import Message

CALL_S = 120.0


class Called(Protocol):
    """An agent that is not reached through a network (engine/local.py, wire/pipe.py)."""

    def call(self, method: str, request: Message) -> Any: ...


class Agents:
    """The agents of a point by the plan's names of their entities.

    A subclass has `call`, which raises Unavailable and TestbedError with the agent's message.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.names = tuple(names)

    def call(self, name: str, method: str, request: Message, timeout_s: float = CALL_S) -> Any:
        """The reply to one call of daemon/agent.proto (wire/messages.py)."""
        raise NotImplementedError

    def all(self, method: str, requests: Mapping[str, Message]) -> dict[str, Any]:
        """One request an agent; raises the first error after all have ended."""
        return self.each({n: functools.partial(self.call, n, method, request) for n, request in requests.items()})

    def each(self, jobs: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """One job an agent; raises the first error after all have ended."""
        results: dict[str, Any] = {}
        errors: list[TestbedError] = []
        for name, job in jobs.items():
            try:
                results[name] = job()
            except TestbedError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return results


class LocalAgents(Agents):
    """Agents of this process or of processes of it; one after the other, and without a limit of time."""

    def __init__(self, agents: Mapping[str, Called]) -> None:
        super().__init__(agents)
        self._agents = agents

    def call(self, name: str, method: str, request: Message, timeout_s: float = CALL_S) -> Any:
        with errors_of(name):
            return self._agents[name].call(method, request)


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Put the agent's name before its errors; one about a value that can't be had names the entity by itself."""
    try:
        yield
    except Unavailable:
        raise
    except TestbedError as error:
        raise TestbedError(f"agent {name}: {error}") from error
