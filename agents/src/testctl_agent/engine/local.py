# SPDX-License-Identifier: Apache-2.0
"""Agents without gRPC, for the lab, where importing it takes longer than all calls of a point, and for netns.

Either they all are in this process, which goes to the namespaces of an agent for a call of it; or there is a process
for each, forked from one that has loaded everything, and a pipe each way.  The calls of agent.proto come one
after the other: ("Apply", ApplyRequest) is answered by (True, ApplyReply) or (False, TestctlError), pickled.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any, BinaryIO

from testctl_agent.engine.factory import AgentConfig, assemble
from testctl_agent.engine.service import Service
from testctl_agent.spec.errors import TestbedError, TestctlError, Unavailable
from testctl_agent.system.namespace import Place, away
from testctl_agent.wire.messages import Message
from testctl_agent.wire.pipe import Pipe


def forked_local_agent(config: AgentConfig, enter: Callable[[], None]) -> tuple[int, Pipe]:
    """Fork an agent that answers once `enter` has put it in its place: its process, and the pipe to it.

    It ends with the process that holds the pipe; what it says besides is on standard error.
    """
    requests, sends = os.pipe()
    receives, replies = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(sends)
            os.close(receives)
            enter()
            calls, answers = os.fdopen(requests, "rb"), os.fdopen(replies, "wb")
            try:
                service: Service | Exception = Service(assemble(config))
            except TestctlError as error:  # a switch's program that is not installed
                service = error
            serve(service, calls, answers)
            os._exit(0)
        except BaseException:  # noqa: BLE001 -- a forked child must not return into its parent's code
            _print_traceback()
        os._exit(1)
    os.close(requests)
    os.close(replies)
    return pid, Pipe(os.fdopen(sends, "wb"), os.fdopen(receives, "rb"))


class HereAgent:
    """An agent of this process, which has no other threads: `call` as of Pipe."""

    def __init__(self, config: AgentConfig, home: Place, enter: Callable[[], None]) -> None:
        """enter: puts this process in the agent's place, where it is assembled; afterwards it is at home again.

        Raises TestbedError, which names the agent.
        """
        self._home = home
        try:
            try:
                enter()
                self.place = Place.here()
                self._service = Service(assemble(config))
            finally:
                home.go()
        except (TestctlError, OSError) as error:
            raise TestbedError(f"agent {config.name}: {error}") from error

    def call(self, method: str, request: Message) -> Any:
        """The reply, which has nothing in common with the agent's own.  Raises what the agent raises."""
        try:
            with away(self._home, self.place):
                answer = _answer(self._service, method, pickle.loads(pickle.dumps(request)))
        except OSError as error:
            raise TestbedError(f"{method}: {error}") from error
        done, reply = pickle.loads(pickle.dumps(answer))
        if not done:
            raise reply
        return reply


def serve(service: Service | Exception, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer calls until the other end is closed; where there is no service, with the reason."""
    while True:
        try:
            method, request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(service, method, request), replies)
        replies.flush()


def _answer(service: Service | Exception, method: str, request: Message) -> tuple[bool, Any]:
    try:
        if isinstance(service, Exception):
            raise service
        return True, getattr(service, method)(request)
    except TestctlError as error:
        kind = Unavailable if isinstance(error, Unavailable) else TestbedError  # a reason to skip; anything else
        return False, kind(str(error))
    except Exception as error:  # noqa: BLE001 -- whatever it was, the agent lives
        _print_traceback()
        return False, TestbedError(f"{method}: {type(error).__name__}; the console says more")


def _print_traceback() -> None:
    import traceback  # which takes long, and nobody needs where all is well

    traceback.print_exc()
