# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC 2.0 over ZMQ, as TRex's interactive server speaks it (TRex RPC server specification, 1.10).

Requests and replies are encoded and decoded by pure functions; the client is a REQ socket.
"""

from __future__ import annotations

import json
import time
from typing import Any, Self

from testctl_agent.spec.errors import TestbedError

PORT = 4501
TIMEOUT_S = 5.0
_TRY_AGAIN, _IN_PROGRESS = -32001, -32002
_AGAIN_S = 0.3


class RpcError(TestbedError):
    """The server refused a request; `code` is JSON-RPC's number, the text is the server's message."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(f"{method}: {message} ({code})")
        self.code = code
        self.message = message


def unavailable() -> str:
    """Why no client can run here; "" when one can."""
    try:
        import zmq  # noqa: F401
    except ImportError:
        return "pyzmq is not installed: pip install testctl-hardware[trex]"
    return ""


def encode(method: str, params: dict[str, Any], number: int) -> bytes:
    """A request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def decode(data: bytes, method: str, number: int) -> Any:
    """The result in a reply, which may be a batch of one.

    Raises RpcError with the server's message, and TestbedError for data that is not the reply to this request.
    """
    try:
        reply = json.loads(data)
    except ValueError as error:
        raise TestbedError(f"{method}: want JSON; got {data[:200]!r}") from error
    if isinstance(reply, list) and len(reply) == 1:
        reply = reply[0]
    if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0" or not {"result", "error"} & reply.keys():
        raise TestbedError(f"{method}: want an answer of JSON-RPC 2.0; got {data[:200]!r}")
    if (refused := reply.get("error")) is not None:
        fields = refused if isinstance(refused, dict) else {"message": str(refused)}
        words = [str(fields[name]) for name in ("message", "specific_err") if fields.get(name)]
        raise RpcError(method, int(fields.get("code", 0)), ": ".join(words) or "it did not say why")
    if reply.get("id") != number:
        raise TestbedError(f"{method}: want the answer to request {number}; got that to {reply.get('id')!r}")
    return reply["result"]


class Client:
    """A connection to a server (a context manager).  Every method raises TestbedError.

    `api` is the handle that authorises calls; `sync` gets it.
    """

    def __init__(self, server: str, port: int = PORT, timeout_s: float = TIMEOUT_S) -> None:
        if why := unavailable():
            raise TestbedError(f"trex: {why}")
        import zmq

        self.where = f"{server}:{port}"
        self._timeout_s = timeout_s
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        for option in (zmq.SNDTIMEO, zmq.RCVTIMEO):
            self._socket.setsockopt(option, int(timeout_s * 1000))
        for option in (zmq.REQ_RELAXED, zmq.REQ_CORRELATE):  # a call without an answer is not the last one
            self._socket.setsockopt(option, 1)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(f"tcp://{server}:{port}")
        self._api: str | None = None
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._context.term()

    def sync(self, name: str, major: int, minor: int) -> None:
        """Agree on the version of an API ("STL", "ASTF"); RpcError when the server has another."""
        found = self.call("api_sync_v2", name=name, major=major, minor=minor)
        if not isinstance(found, dict) or not isinstance(found.get("api_h"), str):
            raise TestbedError(f"trex {self.where}: api_sync_v2: want api_h; got {found!r}")
        self._api = found["api_h"]

    def call(self, method: str, **params: Any) -> Any:
        """The result of one request; waits while the server's work is in progress."""
        end = time.monotonic() + self._timeout_s
        try:
            return self._ended(method, params, end)
        except RpcError as error:
            raise RpcError(f"trex {self.where}: {method}", error.code, error.message) from error

    def _ended(self, method: str, params: dict[str, Any], end: float) -> Any:
        while True:
            try:
                return self._once(method, params)
            except RpcError as error:
                if error.code not in (_TRY_AGAIN, _IN_PROGRESS) or time.monotonic() > end:
                    raise
                if error.code == _IN_PROGRESS:
                    method, params = "get_async_results", {"ticket_id": _ticket(error)}
            time.sleep(_AGAIN_S)

    def _once(self, method: str, params: dict[str, Any]) -> Any:
        import zmq

        self._number += 1
        given = params if self._api is None else {"api_h": self._api, **params}
        try:
            self._socket.send(encode(method, given, self._number))
            data = self._socket.recv()
        except zmq.Again as error:
            why = f"no answer to {method} within {self._timeout_s:g} s: is the server running (t-rex-64 -i)?"
            raise TestbedError(f"trex {self.where}: {why}") from error
        except zmq.ZMQError as error:
            raise TestbedError(f"trex {self.where}: {method}: {error}") from error
        return decode(data, method, self._number)


def _ticket(error: RpcError) -> int:
    """The ticket number for the result of work in progress: the last word of the error."""
    words = error.message.split()
    if not words or not words[-1].isdigit():
        raise error
    return int(words[-1])
