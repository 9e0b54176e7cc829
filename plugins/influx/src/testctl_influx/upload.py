# SPDX-License-Identifier: Apache-2.0
"""Uploads lines: first what waits on disk, then what is new; what the server can't take now waits on disk."""

from __future__ import annotations

import gzip
import os
import ssl
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.units import Bytes

from testctl_influx.credentials import Credentials
from testctl_influx.send import Away, Patience, Refused, Server
from testctl_influx.spool import DamagedBatchError, Spool, SpoolFull, held
from testctl_influx.target import Destination

MAX_LINES = 5000
MAX_BYTES = 1_000_000
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class UploadOptions:
    """Options of an upload: the spool and its size, the number of attempts, and the maximum size of a batch."""

    spool: Path
    limit: Bytes
    patience: Patience
    most_lines: int = MAX_LINES
    most_bytes: int = MAX_BYTES


@dataclass
class Done:
    """What became of an upload: batches that were written, that wait, that the server refused.

    replayed  of the written ones, those that an earlier upload had left on disk
    away      why batches wait; "" when none do
    refusals  the server's words for each refused batch, and where it is kept, or why it is not
    """

    lines: int = 0
    written: int = 0
    replayed: int = 0
    waiting: int = 0
    away: str = ""
    refusals: tuple[str, ...] = ()


def batches(lines: Iterable[str], most_lines: int, most_bytes: int) -> Iterator[list[str]]:
    """The lines in order, in batches of bounded count and size (a line that is longer comes alone)."""
    batch: list[str] = []
    size = 0
    for one in lines:
        length = len(one.encode()) + 1
        if batch and (len(batch) == most_lines or size + length > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += length
    if batch:
        yield batch


def packed(batch: Iterable[str]) -> bytes:
    """A batch as it is sent and kept: the same lines give the same bytes."""
    return gzip.compress("".join(f"{one}\n" for one in batch).encode(), mtime=0)


def upload(
    lines: Iterable[str],
    target: Destination,
    credentials: Credentials,
    options: UploadOptions,
    say: Callable[[str], None] = lambda _: None,
) -> Done:
    """Write all that waits for the target and then all lines; `say` gets a line of progress now and then.

    A batch is on the server, in the spool or in its refused/; or that is full, and a refusal says so.  Raises
    NotAllowed when the server refuses everything, SpoolFull if the spool is full.
    """
    done = Done()
    with (
        held(options.spool, target, options.limit, lambda: say("another upload is under way; waiting")) as spool,
        _client() as client,
    ):
        sender = _Sender(Server(client, target, credentials, options.patience), spool, done)
        sender.replay()
        for batch in batches(lines, options.most_lines, options.most_bytes):
            done.lines += len(batch)
            sender.send(packed(batch))
            say(f"{done.lines} lines")
        done.waiting = len(spool.waiting())
    return done


def _client() -> httpx.Client:
    """Nobody but the server of the URL gets the credentials: no proxy of the environment, no other server's redirect.

    SSL_CERT_FILE and SSL_CERT_DIR say whom to believe, as for other programs.
    """
    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    try:
        verify = ssl.create_default_context(cafile=file, capath=directory) if file or directory else True
    except OSError as error:
        raise PlanError(f"SSL_CERT_FILE={file}: want certificates; got: {error.strerror}") from error
    return httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False, verify=verify)


class _Sender:
    """Sends batches in order; once the server is away, all that follow wait behind those that do."""

    def __init__(self, server: Server, spool: Spool, done: Done) -> None:
        self._server, self._spool, self._done = server, spool, done

    def replay(self) -> None:
        """Write what waits, the oldest first, forgetting each batch once the server has it."""
        for path in self._spool.waiting():
            before = self._done.written
            try:
                batch = self._spool.read(path)
            except DamagedBatchError as error:
                self._done.refusals += (str(error),)
                continue
            if not self._written(batch):
                return
            self._done.replayed += self._done.written - before
            self._spool.drop(path)

    def send(self, batch: bytes) -> None:
        if not self._written(batch):
            self._spool.add(batch)

    def _written(self, batch: bytes) -> bool:
        """Whether no more is to be done for a batch: it is on the server, or refused and kept."""
        if self._done.away:
            return False
        try:
            self._server = self._server.detected()
            self._server.write(batch)
        except Away as error:
            self._done.away = str(error)
            return False
        except Refused as error:
            try:
                kept = str(self._spool.refuse(batch, str(error)))
            except SpoolFull as full:
                kept = f"not kept: {full}"
            self._done.refusals += (f"{error} ({kept})",)
            return True
        self._done.written += 1
        return True
