# SPDX-License-Identifier: Apache-2.0
"""Calls of an agent through a pipe each way, to a process of the same code on the same machine (engine/local.py)."""

from __future__ import annotations

import pickle
from contextlib import suppress
from typing import Any, BinaryIO

from testctl_agent.spec.errors import TestbedError
from testctl_agent.wire.messages import Message


class Pipe:
    """The caller's end."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._requests = requests
        self._replies = replies

    def call(self, method: str, request: Message) -> Any:
        """The reply.  Raises what the agent raised, TestbedError when it has ended."""
        try:
            pickle.dump((method, request), self._requests)
            self._requests.flush()
            done, reply = pickle.load(self._replies)
        except (EOFError, BrokenPipeError) as error:
            raise TestbedError("ended before it answered (its words are on the console)") from error
        if not done:
            raise reply
        return reply

    def close(self) -> None:
        """The agent ends once it has answered."""
        with suppress(BrokenPipeError):  # of what an agent that has ended was not given
            self._requests.close()
        self._replies.close()
