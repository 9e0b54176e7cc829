# SPDX-License-Identifier: Apache-2.0
"""A real InfluxDB 2.x on loopback, set up through its API.  Debian has none: the environment names the program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from plugins.influx.tests.influxd import Server

VARIABLE = "TESTCTL_INFLUXD2"
PROGRAM = os.environ.get(VARIABLE)
REASON = f"{VARIABLE} names no influxd of InfluxDB 2"
ORG = "lab"
TOKEN = "all-may-be-done"


class Influxd2(Server):
    """InfluxDB 2.x with the organisation ORG and a token that may do all.

    Queries are asked as Grafana does that was set up for InfluxDB 1: at /query, with a token for the password.
    """

    def __init__(self, where: Path) -> None:
        super().__init__(where, ("anybody", TOKEN))
        self._where = where

    def argv(self) -> list[str]:
        assert PROGRAM is not None
        files = {"bolt-path": "bolt", "engine-path": "engine", "sqlite-path": "sqlite"}
        where = [f"--{option}={self._where / name}" for option, name in files.items()]
        return [PROGRAM, f"--http-bind-address={self.address}", *where, "--reporting-disabled"]

    def setup(self) -> None:
        """The first user, ORG and TOKEN, which a new server asks for."""
        self.call("POST", "setup", username="root", password="r00tr00t", org=ORG, bucket="first", token=TOKEN)

    def make(self, database: str, keep_s: int = 0) -> None:
        """An empty bucket, which is a database of the same name for queries, with a retention or without (0)."""
        self.remove(database)
        rules = [{"type": "expire", "everySeconds": keep_s}] if keep_s else []
        self.call("POST", "buckets", orgID=self._org(), name=database, retentionRules=rules)

    def remove(self, bucket: str) -> None:
        """Remove a bucket and all in it, if it is there."""
        for found in self.call("GET", "buckets").get("buckets", ()):
            if found["name"] == bucket:
                self.call("DELETE", f"buckets/{found['id']}")

    def map(self, bucket: str, database: str) -> None:
        """Answer queries of a database from a bucket (a DBRP mapping)."""
        words = {"database": database, "retention_policy": "autogen", "default": True}
        self.call("POST", "dbrps", orgID=self._org(), bucketID=self._bucket(bucket), **words)

    def token(self, action: str, bucket: str) -> str:
        """A token that may only "read" or "write" a bucket."""
        resource = {"type": "buckets", "id": self._bucket(bucket), "orgID": self._org()}
        rights = [{"action": action, "resource": resource}]
        return str(self.call("POST", "authorizations", orgID=self._org(), permissions=rights)["token"])

    def call(self, method: str, path: str, **body: object) -> dict[str, Any]:
        """Ask the API with a body, or with parameters where the method is GET; returns its answer."""
        sent: dict[str, Any] = {"params": body} if method == "GET" else {"json": body}
        headers = {"Authorization": f"Token {TOKEN}"}
        answer = httpx.request(method, f"{self.url}/api/v2/{path}", headers=headers, timeout=300, **sent)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    def _org(self) -> str:
        return str(self.call("GET", "orgs", org=ORG)["orgs"][0]["id"])

    def _bucket(self, name: str) -> str:
        (found,) = self.call("GET", "buckets", name=name)["buckets"]
        return str(found["id"])


@contextmanager
def running2(where: Path) -> Iterator[Influxd2]:
    """A running server with its data below `where`."""
    made = Influxd2(where)
    try:
        made.start()
        made.setup()
        yield made
    finally:
        made.close()
