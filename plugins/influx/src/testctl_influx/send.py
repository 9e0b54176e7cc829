# SPDX-License-Identifier: Apache-2.0
"""Sends batches to a server, again after a pause when it is away or busy."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
from testctl_agent.spec.errors import TestbedError

from testctl_influx.credentials import Credentials
from testctl_influx.target import Destination, with_version, write_request

MAX_PAUSE_S = 30.0
"""The longest pause before another attempt, whatever a server's Retry-After asks."""

_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_OF_THE_BATCH = frozenset({400, 413, 422})
_NO_POLICY = "retention policy not found"
"""An error of InfluxDB 1 with status 500 that is permanent; other errors with 500 are temporary."""


class Away(TestbedError):
    """The server could not be reached, or was busy, at every attempt: nothing is known of the batch."""


class Refused(TestbedError):
    """The server will never take this batch, or not all of it; it takes others."""


class NotAllowed(TestbedError):
    """The server will take no batch as things are: credentials, database, address."""


@dataclass(frozen=True)
class Patience:
    """How often a request is tried, and the pause between: half to all of first_s, twice as long each time."""

    attempts: int = 5
    first_s: float = 0.5
    chance: random.Random = field(default_factory=random.Random)
    sleep: Callable[[float], None] = time.sleep

    def pause(self, attempt: int, asked_s: float) -> None:
        """Wait after a failed attempt (0 is the first), at least as long as the server asked."""
        longest = self.first_s * 2**attempt
        self.sleep(min(max(self.chance.uniform(longest / 2, longest), asked_s), MAX_PAUSE_S))


@dataclass(frozen=True)
class Server:
    """A server that lines can be written to."""

    client: httpx.Client
    target: Destination
    credentials: Credentials
    patience: Patience

    def detected(self) -> Server:
        """This server with its API known, by what it says at /ping.  Raises Away, NotAllowed, PlanError."""
        if self.target.api:
            return self
        headers = self.credentials.headers("")
        answer = self._asked(lambda: self.client.get(f"{self.target.url}/ping", headers=headers))
        version = answer.headers.get("x-influxdb-version", "")
        if not answer.is_success or not version:
            raise NotAllowed(
                f"{self.target.url}/ping: want InfluxDB's version, or --api that says it; "
                f"got {answer.status_code} {_said(answer)}"
            )
        return Server(self.client, with_version(self.target, version), self.credentials, self.patience)

    def write(self, batch: bytes) -> None:
        """Write a batch of gzipped lines.  Raises Away, Refused, NotAllowed; writing twice is no harm."""
        url, params, headers = write_request(self.target, self.credentials)
        answer = self._asked(lambda: self.client.post(url, params=params, headers=headers, content=batch))
        if answer.is_success:
            return
        kind = Refused if answer.status_code in _OF_THE_BATCH else NotAllowed
        raise kind(f"{self.target.place}: {answer.status_code} {_said(answer)}")

    def _asked(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """The first answer that is not "later"; raises Away when there is none."""
        why = ""
        for attempt in range(self.patience.attempts):
            asked_s = 0.0
            try:
                answer = ask()
            except httpx.RequestError as error:
                why = str(error) or type(error).__name__
            else:
                if answer.status_code not in _BUSY or _NO_POLICY in answer.text:
                    return answer
                why, asked_s = f"{answer.status_code} {_said(answer)}", _retry_after_s(answer)
            if attempt + 1 < self.patience.attempts:
                self.patience.pause(attempt, asked_s)
        raise Away(f"{self.target.place}: not there after {self.patience.attempts} attempts: {why}")


def _retry_after_s(answer: httpx.Response) -> float:
    """Seconds that a server asks for; a date or nonsense is 0."""
    value = answer.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else 0.0


def _said(answer: httpx.Response) -> str:
    """A server's words about an error, in one line."""
    text = answer.text.strip()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        parts = [str(found[name]) for name in ("error", "message") if found.get(name)]
        lines = found.get("data")
        for one in lines if isinstance(lines, list) else ():
            if isinstance(one, dict):
                parts.append(f"line {one.get('line_number')}: {one.get('error_message')}")
        text = "; ".join(parts) or text
    text = " ".join(text.split())
    return text if len(text) <= 500 else text[:499] + "…"
