# SPDX-License-Identifier: Apache-2.0
"""The spool of batches for a server that is not available: complete files, in order, none twice, of bounded size.

One directory a target; `<number>-<digest>.lp.gz` are the batches, refused/ holds those that the server will never take.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testctl.results.atomic import naming_path
from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.spec.units import Bytes
from testctl_agent.system import durable

from testctl_influx.target import Destination

_END = ".lp.gz"
_LOCK = "lock"
_REFUSED = "refused"
_PLACE = "target.txt"


class SpoolFull(TestbedError):
    """The spool is full."""


class DamagedBatchError(TestctlError):
    """A batch on disk is not what was kept there."""


@dataclass(frozen=True)
class Spool:
    """The batches of one target; to be used inside `held`.  limit: of those that wait, and again of refused ones."""

    path: Path
    limit: Bytes

    def waiting(self) -> list[Path]:
        """The batches that wait, the oldest first."""
        return sorted(self.path.glob(f"*{_END}"))

    def refused(self) -> list[Path]:
        """The batches that the server would not take."""
        return sorted((self.path / _REFUSED).glob(f"*{_END}"))

    def add(self, batch: bytes) -> Path:
        """Keep a batch behind all that wait; one that waits already is not kept twice.

        Raises SpoolFull, and TestbedError when it can't be written; then nothing of it is kept.
        """
        digest = _digest(batch)
        if there := self._waits(digest):
            return there
        waiting = self.waiting()
        self._check(waiting, len(batch), "wait", "upload the run again when the server is back")
        number = int(waiting[-1].name.partition("-")[0]) + 1 if waiting else 0
        final = self.path / f"{number:010d}-{digest}{_END}"
        self._write(final, batch)
        return final

    def read(self, path: Path) -> bytes:
        """A batch that waits.  Raises DamagedBatchError when it is not what `add` kept; it is then in refused/."""
        with naming_path(path, "nothing was uploaded"):
            batch = path.read_bytes()
        digest = _digest(batch)
        if path.name.endswith(f"-{digest}{_END}"):
            return batch
        why = f"{path.name}: want the batch of this digest; got {len(batch)} bytes of {digest}"
        final = self.path / _REFUSED / path.name
        with naming_path(path, f"nothing was uploaded; {why}"):
            durable.make_directory(final.parent, 0o700)
            durable.write(final.with_name(f"{final.name.removesuffix(_END)}.txt"), f"{why}\n".encode(), 0o600)
            durable.publish(path, final)
            durable.sync(path.parent)
        raise DamagedBatchError(f"{why}; upload its run again ({final})")

    def refuse(self, batch: bytes, why: str) -> Path:
        """Keep a batch that the server will never take, and why beside it; returns where.

        Raises SpoolFull where refused ones fill their own share; those that wait have theirs.
        """
        digest = _digest(batch)
        final = self.path / _REFUSED / f"{digest}{_END}"
        with naming_path(final, "a batch that the server refused was not kept"):
            durable.make_directory(final.parent, 0o700)
        if not final.exists():
            advice = "look at them and remove them, and upload the run again"
            self._check(self.refused(), len(batch), "the server refused", advice)
            self._write(final, batch)
            self._write(final.with_name(f"{digest}.txt"), why.encode() + b"\n")
        return final

    def drop(self, path: Path) -> None:
        """Forget a batch that was written to the server."""
        with naming_path(path, "it is on the server and waits here still; the next upload writes it again, to no harm"):
            durable.remove(path)

    def _waits(self, digest: str) -> Path | None:
        return next((path for path in self.waiting() if path.name.endswith(f"-{digest}{_END}")), None)

    def _check(self, there: list[Path], more: int, which: str, advice: str) -> None:
        size = sum(path.stat().st_size for path in there)
        if size + more > self.limit:
            raise SpoolFull(
                f"{there[0].parent if there else self.path}: want {Bytes(more)} more for batches that {which}; "
                f"got {Bytes(size)} of at most {self.limit} there already (--spool-limit); {advice}"
            )

    def _write(self, final: Path, content: bytes) -> None:
        with naming_path(final, "a batch was not kept; upload the run again"):
            durable.write(final, content, 0o600)


@contextmanager
def held(root: Path, target: Destination, limit: Bytes, wait: Callable[[], None]) -> Iterator[Spool]:
    """The spool of a target, for one upload at a time; `wait` is called before waiting for another one's end."""
    path = root / target.key
    with naming_path(path, "nothing was uploaded: a server that goes away needs it"):
        durable.make_directory(path, 0o700)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        with naming_path(path, "nothing was uploaded"):
            for left in path.glob(".*.tmp"):
                left.unlink()
            durable.write(path / _PLACE, f"{target.place}\n".encode(), 0o600)
        yield Spool(path, limit)
    finally:
        os.close(lock)


def _digest(batch: bytes) -> str:
    return hashlib.sha256(batch).hexdigest()[:32]
