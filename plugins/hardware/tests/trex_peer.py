# SPDX-License-Identifier: Apache-2.0
"""A scripted peer that speaks as TRex's RPC specification documents; no TRex, and no traffic.

It shows that requests are well formed and that answers are understood as documented, not that a server agrees.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Answer = Callable[[dict[str, Any]], Any]
"""From a request's parameters to its result, or to a Refusal."""


class Refusal(dict[str, Any]):
    """A JSON-RPC error: code, message, specific_err."""


class Peer:
    """Answers requests by their method and keeps them."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        import zmq

        self.requests: list[dict[str, Any]] = []
        self._answers = answers
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self.port = int(self._socket.bind_to_random_port("tcp://127.0.0.1"))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def methods(self) -> list[str]:
        return [request["method"] for request in self.requests]

    def params(self, method: str) -> dict[str, Any]:
        """Those of the last request of that method."""
        return dict(next(request["params"] for request in reversed(self.requests) if request["method"] == method))

    def _serve(self) -> None:
        while not self._stop.is_set():
            if self._socket.poll(20):
                self._socket.send(self._reply(self._socket.recv()))

    def _reply(self, data: bytes) -> bytes:
        request = json.loads(data)
        self.requests.append(request)
        if request["method"] not in self._answers:
            found: Any = Refusal(code=-32601, message="Method not registered")
        else:
            answer = self._answers[request["method"]]
            found = answer(request["params"]) if callable(answer) else answer
        if isinstance(found, bytes):
            return found
        said = {"jsonrpc": "2.0", "id": request["id"], "error" if isinstance(found, Refusal) else "result": found}
        return json.dumps(said).encode()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()
        self._context.term()


@contextmanager
def peer(answers: Mapping[str, Any]) -> Iterator[Peer]:
    found = Peer(answers)
    try:
        yield found
    finally:
        found.close()


def states(*each: Any) -> Answer:
    """Answers one after the other; the last one for ever."""
    left = list(each)
    return lambda params: left.pop(0) if len(left) > 1 else left[0]
