# SPDX-License-Identifier: Apache-2.0
"""The controller's side of a Dask cluster: submits a few points at a time, and collects their results.

Dask runs a task again when its worker is lost.  It does not know the archive that a finished task leaves on its
worker; if that can't be fetched, this module runs the point again.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from testctl.execution.pool import Done, Finished
from testctl.plan import Point
from testctl.results import PointResult, layout, write_point
from testctl.results.atomic import check_room, naming_path
from testctl.results.work import WORK
from testctl.serve.auth import is_loopback
from testctl.testbeds.ready import ReadyTestbed
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl_cluster.inert import inert_pickles
from testctl_cluster.worker import (
    Fitness,
    OddAnswer,
    Parcel,
    drop,
    fitness,
    fitness_bytes,
    from_bytes,
    piece,
    sha256_of,
    unpack,
    work,
)

if TYPE_CHECKING:
    from distributed import Client, Future

SAFE = ("tls", "wss", "inproc")
"""Schemes of Dask's addresses that are reached by nobody else, wherever they are."""
WANTED = "want the address of a Dask scheduler, such as tls://10.0.0.1:8786"
AHEAD = 2
"""Submitted points per thread of a worker: one runs, one waits."""
PIECE_BYTES = 8 << 20
CONNECT_S = 20
WORKERLESS_S = 120
"""A run ends when its cluster has had no worker for this time."""
POLL_S = 5
MAX_FETCHES = 5
"""A point whose archive was lost this often is broken."""

Task = tuple[Point, int]
"""A point, and the number of the attempt."""


@dataclass(frozen=True)
class ClusterPool:
    """Workers of the Dask scheduler at this address (testctl.execution.pool.Pool)."""

    address: str
    workerless_s: float = WORKERLESS_S
    insecure: bool = False

    def __post_init__(self) -> None:
        """Raises PlanError for an address of another machine without TLS, unless that is accepted."""
        scheme, _, rest = self.address.rpartition("://")
        try:
            host = urlsplit(f"//{rest}").hostname or ""
        except ValueError as error:
            raise PlanError(f"--cluster {self.address}: {WANTED}; got: {error}") from error
        if scheme not in SAFE and not self.insecure and not is_loopback(host):
            raise PlanError(
                f"--cluster {self.address}: want tls://, because anyone who reaches that scheduler can act as a worker "
                "and read, change and invent results (docs/cluster.md); --insecure allows tcp:// on a private network"
            )

    def work(self, testbed: ReadyTestbed, points: Iterator[Point], run: Path, keep_captures: bool) -> Finished:
        with inert_pickles(), _connected(self.address) as client:
            _check_workers(client, self.address, testbed)
            yield from _Gathering(self, client, testbed, run, keep_captures).all(points)


class _Gathering:
    """The submitted points, never more than AHEAD per thread."""

    def __init__(
        self, pool: ClusterPool, client: Client, testbed: ReadyTestbed, run: Path, keep_captures: bool
    ) -> None:
        self._pool = pool
        self._client = client
        self._testbed = testbed
        self._run = run
        self._keep_captures = keep_captures
        self._code = fitness().code
        self._name = f"testctl-{uuid.uuid4().hex[:12]}"
        self._under_way: dict[Future, Task] = {}
        self._alone_since: float | None = None

    def all(self, points: Iterator[Point]) -> Finished:
        from distributed.client import FutureCancelledError

        try:
            while True:
                for point in islice(points, max(AHEAD * self._threads() - len(self._under_way), 0)):
                    self._submit((point, 0))
                if not self._under_way and self._threads():
                    return
                for future in self._ended():
                    yield from self._take(future, self._under_way.pop(future))
        except (OSError, FutureCancelledError) as error:
            raise TestbedError(f"cluster {self._pool.address}: the scheduler was lost: {error}") from error
        finally:
            if self._under_way and self._client.status == "running":
                self._client.cancel(list(self._under_way), force=True)

    def _threads(self) -> int:
        """The threads of all workers.  Raises TestbedError if there has been no worker for too long."""
        found: int = sum(self._client.nthreads().values())
        now = time.monotonic()
        self._alone_since = None if found else self._alone_since or now
        if self._alone_since is not None and now - self._alone_since > self._pool.workerless_s:
            raise TestbedError(
                f"cluster {self._pool.address}: no worker for {self._pool.workerless_s:g} s; start some and --resume"
            )
        return found

    def _submit(self, task: Task) -> None:
        point, attempt = task
        key = self._testbed.code_key(point)
        future = self._client.submit(
            work, self._testbed, point, key, self._code, self._keep_captures,
            key=f"{self._name}-{point.id}-{attempt}", pure=False,
        )  # fmt: skip
        self._under_way[future] = task

    def _ended(self) -> list[Future]:
        """The tasks that have ended; [] if none ended within a while."""
        from distributed import wait

        if not self._under_way:
            time.sleep(min(POLL_S, self._pool.workerless_s))
            return []
        try:
            with self._client.as_current():
                return list(wait(list(self._under_way), timeout=POLL_S, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return []

    def _take(self, future: Future, task: Task) -> Iterator[Done]:
        """Handle a finished task: put the point's directory into the run, or submit the point again."""
        from distributed import KilledWorker

        point, attempt = task
        status = future.status
        if status in ("pending", "lost"):  # it had ended, and then the worker with its result was lost
            self._under_way[future] = task
            return
        if status == "finished":
            try:
                parcel = from_bytes(Parcel, future.result(timeout=POLL_S))
            except TimeoutError:  # lost with its worker; Dask runs it again on another
                self._under_way[future] = task
                return
            except (TestbedError, TypeError) as error:
                yield self._broken(point, f"its worker's answer is none: {error}")
                return
            if parcel.error:
                raise TestbedError(f"cluster {self._pool.address}: {parcel.error}")
            try:
                verdict = self._fetch(parcel, point)
            except OddAnswer as error:
                yield self._broken(point, f"its worker's answer is none: {error}")
                return
            if verdict:
                yield point, verdict, parcel.wall_s
            elif attempt + 1 < MAX_FETCHES:
                self._submit((point, attempt + 1))
            else:
                yield self._broken(point, f"what it left on its worker could not be fetched, {MAX_FETCHES} times")
            return
        failure = future.exception()
        if isinstance(failure, KilledWorker):
            yield self._broken(point, f"every worker that ran it was lost: {failure}")
            return
        raise TestbedError(f"cluster {self._pool.address}: {failure}") from failure

    def _broken(self, point: Point, reason: str) -> Done:
        write_point(self._run, PointResult(point=point.to_json(), verdict="broken", reason=reason))
        return point, "broken", 0.0

    def _fetch(self, parcel: Parcel, point: Point) -> str:
        """Fetch a point's directory and return its verdict; "" if its worker is lost or the checksum is wrong.

        Raises OddAnswer if the archive is not of that point.
        """
        final = layout.point_dir(self._run, point.id)
        fresh = final.with_name(f".{point.id}.{os.getpid()}.tmp")
        archive = self._run / WORK / f"{point.id}.zip"
        with naming_path(final, f"point {point.id} was lost, finished points are kept (`--resume` uses them)"):
            archive.parent.mkdir(exist_ok=True)
            try:
                if not self._pieces(parcel, archive) or sha256_of(archive) != parcel.sha256:
                    return ""
                shutil.rmtree(fresh, ignore_errors=True)
                verdict = unpack(archive, fresh, point.id)
                durable.publish(fresh, final)
            finally:
                archive.unlink(missing_ok=True)
                shutil.rmtree(fresh, ignore_errors=True)
        return verdict

    def _pieces(self, parcel: Parcel, archive: Path) -> bool:
        """Fetch the archive, with at most PIECE_BYTES in memory; False if the worker is lost."""
        with archive.open("wb") as file:
            for offset in range(0, parcel.size, PIECE_BYTES):
                data = self._ask(parcel, piece, parcel.path, offset, PIECE_BYTES)
                if not isinstance(data, bytes) or not 0 < len(data) <= PIECE_BYTES:
                    return False
                check_room(archive, len(data))
                file.write(data)
        with suppress(OddAnswer):
            self._ask(parcel, drop, parcel.path)
        return True

    def _ask(self, parcel: Parcel, what: object, *words: object) -> object:
        """A worker's reply; None if the worker is lost."""
        if parcel.worker not in self._client.nthreads():
            return None
        return _asked(self._client, what, *words, workers=[parcel.worker]).get(parcel.worker)


def open_pool(address: str, *, insecure: bool) -> ClusterPool:
    """The pool of `testctl run --cluster ADDRESS`."""
    return ClusterPool(address, insecure=insecure)


def _connected(address: str) -> Client:
    """A client of the scheduler.  Raises TestbedError if there is no scheduler."""
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    client: Client = Client.__new__(Client)  # created first, so that it can be closed here if __init__ fails
    try:
        client.__init__(address, timeout=CONNECT_S, set_as_default=False, deserializers=["msgpack", "error"])
        return client
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        with suppress(Exception):
            client.close(timeout=1)
        raise TestbedError(
            f"--cluster {address}: {WANTED}, and for tls:// "
            f"certificates in Dask's configuration (docs/cluster.md); got: {str(error) or type(error).__name__}"
        ) from error


def _asked(client: Client, what: object, *words: object, workers: list[str] | None = None) -> dict[str, object]:
    """Address of a worker → its reply.  Raises OddAnswer for a reply that would have to be unpickled."""
    try:
        found: dict[str, object] = client.run(what, *words, workers=workers, on_error="return")
    except (TypeError, ValueError, AssertionError, EOFError, AttributeError) as error:
        raise OddAnswer(f"a worker's answer can't be read: {str(error).partition(chr(10))[0]}") from error
    return found


def _check_workers(client: Client, address: str, testbed: ReadyTestbed) -> None:
    """Check that every worker has this code, this Python and what the testbed needs.

    Raises TestbedError that names every worker that does not.
    """
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError as error:
        raise TestbedError(f"--cluster {address}: no worker there; start one: dask worker {address}") from error
    mine = fitness()
    wrong = []
    for worker, answer in sorted(_asked(client, fitness_bytes, testbed).items()):
        if isinstance(answer, OSError):
            continue  # the worker was just lost, which may happen at any time
        if not isinstance(answer, bytes):
            wrong.append(f"{worker}: it can't import testctl: {answer!r}")
            continue
        worker_fitness = from_bytes(Fitness, answer)
        if replace(worker_fitness, problem="") != mine:
            wrong.append(f"{worker}: want {_words(mine)}; got {_words(worker_fitness)}")
        elif worker_fitness.problem:
            wrong.append(f"{worker}: {worker_fitness.problem}")
    if wrong:
        raise TestbedError(f"--cluster {address}: not every worker can run this\n  " + "\n  ".join(wrong))


def _words(worker_fitness: Fitness) -> str:
    return f"testctl {worker_fitness.version} (code {worker_fitness.code}) on Python {worker_fitness.python}"
