# SPDX-License-Identifier: Apache-2.0
"""Calls of an agent through a pipe each way, to a process of the same code on the same machine (engine/local.py)."""

from __future__ import annotations

import pickle
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from testctl_agent.spec.errors import TestbedError
from testctl_agent.wire.messages import Message


class Pipe:
    """The caller's end.  console: the agent's output, or where it is, for an error."""

    def __init__(
        self, requests: BinaryIO, replies: BinaryIO, console: Callable[[], str] = lambda: "its words are on the console"
    ) -> None:
        self._requests = requests
        self._replies = replies
        self._console = console

    def call(self, method: str, request: Message, limit_s: float | None = None) -> Any:
        """The reply.  Raises what the agent raised, TestbedError when it has ended or takes longer than limit_s.

        After a reply that did not come in time the pipe is closed: that reply would answer the next call.
        """
        try:
            pickle.dump((method, request), self._requests)
            self._requests.flush()
            if limit_s is not None and not self._replied(limit_s):
                self.close()
                raise TestbedError(f"{method}: no answer within {limit_s:g} s")
            done, reply = pickle.load(self._replies)
        except (EOFError, BrokenPipeError, ValueError) as error:  # ValueError: it is closed
            raise TestbedError(f"ended before it answered ({self._console()})") from error
        if not done:
            raise reply
        return reply

    def _replied(self, limit_s: float) -> bool:
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))

    def files(self) -> tuple[int, int]:
        """The descriptors of requests and replies, for another process that is to make the calls."""
        return self._requests.fileno(), self._replies.fileno()

    def close(self) -> None:
        """The agent ends once it has answered."""
        with suppress(BrokenPipeError):  # of what an agent that has ended was not given
            self._requests.close()
        self._replies.close()
