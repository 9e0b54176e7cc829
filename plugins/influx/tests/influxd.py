# SPDX-License-Identifier: Apache-2.0
"""Real InfluxDBs on loopback that a test can stop and start: 1.x of Debian's package; influxd2.py has 2.x."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

PROGRAM = shutil.which("influxd")
REASON = "influxd is not installed (Debian's package influxdb)"

_CONFIG = """
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "{where}/meta"
[data]
  dir = "{where}/data"
  wal-dir = "{where}/wal"
  index-version = "tsi1"
  cache-max-memory-size = 134217728
  query-log-enabled = false
[http]
  bind-address = "{address}"
  log-enabled = false
  auth-enabled = {auth}
  ping-auth-enabled = {auth}
[monitor]
  store-enabled = false
[continuous_queries]
  enabled = false
"""


class Server:
    """An influxd; its data stay when it is stopped, and so does its port.

    auth: (user, password) of every request; without, nobody in particular asks.
    """

    def __init__(self, where: Path, auth: tuple[str, str] | None = None) -> None:
        self._log = where / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(timeout=300, auth=auth)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{self.address}"

    def argv(self) -> list[str]:
        """The program and its arguments."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it, if it does not run."""
        if self._process is not None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self.argv(), stdout=log, stderr=log, env=os.environ | {"GOMAXPROCS": "2"})
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            try:
                # Before there is a user, nobody can say who asks.
                if self._client.get(f"{self.url}/ping").status_code in (204, 401):
                    return
            except httpx.TransportError:
                assert self._process.poll() is None, self._log.read_text(encoding="utf-8")
            time.sleep(0.05)
        raise AssertionError("influxd did not answer within 300 s")

    def close(self) -> None:
        """Stop it for good."""
        self.stop()
        self._client.close()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop it, if it runs."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(300)
            self._process = None

    def write(self, lines: str, database: str = "testctl") -> httpx.Response:
        """Post lines as they are; returns the answer, whatever it is."""
        return self._client.post(
            f"{self.url}/write", params={"db": database, "precision": "ns"}, content=lines.encode()
        )

    def ask(self, query: str, database: str = "testctl") -> list[dict[str, Any]]:
        """The series that a query finds: name, tags, columns, values; times in ns."""
        answer = self._client.post(f"{self.url}/query", params={"db": database, "q": query, "epoch": "ns"})
        assert answer.status_code == 200, answer.text
        (result,) = answer.json()["results"]
        assert "error" not in result, f"{query}: {result['error']}"
        return list(result.get("series", ()))

    def rows(self, query: str, database: str = "testctl") -> list[dict[str, Any]]:
        """The same as rows, each with its tags."""
        return [
            {**one.get("tags", {}), **dict(zip(one["columns"], values, strict=True))}
            for one in self.ask(query, database)
            for values in one["values"]
        ]

    def dump(self, database: str = "testctl") -> dict[str, list[Any]]:
        """All that a database holds, by measurement, in a form that can be compared."""
        names = [values[0] for one in self.ask("SHOW MEASUREMENTS", database) for values in one["values"]]
        return {name: sorted(map(str, self.rows(f'SELECT * FROM "{name}"', database))) for name in names}


class Influxd(Server):
    """InfluxDB 1.x.

    admin: (user, password) of the one who may do all; without, everybody may.
    """

    def __init__(self, where: Path, admin: tuple[str, str] | None = None) -> None:
        super().__init__(where, admin)
        self._config = where / "influxd.conf"
        text = _CONFIG.format(where=where, address=self.address, auth="true" if admin else "false")
        self._config.write_text(text, encoding="utf-8")

    def argv(self) -> list[str]:
        assert PROGRAM is not None
        return [PROGRAM, "run", "-config", str(self._config)]

    def make(self, database: str) -> None:
        """An empty database; what it held before is gone."""
        self.ask(f'DROP DATABASE "{database}"')
        self.ask(f'CREATE DATABASE "{database}"')


@contextmanager
def running(where: Path, admin: tuple[str, str] | None = None) -> Iterator[Influxd]:
    """A running server with its data below `where`; skips the test where there is none to run."""
    if PROGRAM is None:
        pytest.skip(REASON)
    made = Influxd(where, admin)
    try:
        made.start()
        yield made
    finally:
        made.close()
