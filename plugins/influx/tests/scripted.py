# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that answers what a test says, such as what InfluxDB 2 and 3 are documented to, and keeps requests."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Answer:
    """A status, a JSON body ("" is none) and headers."""

    status: int = 204
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    lines: tuple[str, ...]


@dataclass
class Scripted:
    """What it answers to GET /ping, and to writes one after the other (204 when there is no more).

    taken  the lines that it accepted with 204
    """

    url: str
    ping: Answer
    writes: list[Answer]
    asked: list[Asked] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        if asked.path.endswith("/ping"):
            return self.ping
        given = self.writes.pop(0) if self.writes else Answer()
        self.taken += asked.lines if given.status == 204 else ()
        return given


@contextmanager
def scripted(ping: Answer | None = None, writes: tuple[Answer, ...] = ()) -> Iterator[Scripted]:
    """A server on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            given = made.answer(
                Asked(
                    self.command,
                    parts.path,
                    dict(parse_qsl(parts.query, keep_blank_values=True)),
                    {name.lower(): value for name, value in self.headers.items()},
                    tuple(body.decode().splitlines()),
                )
            )
            content = json.dumps(given.body).encode() if given.body else b""
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            if given.status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made = Scripted(f"http://127.0.0.1:{server.server_port}", ping or Answer(404), list(writes))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
