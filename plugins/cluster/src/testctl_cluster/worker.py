# SPDX-License-Identifier: Apache-2.0
"""The code that runs on a worker: runs one point and packs it into an archive, which the controller fetches."""

from __future__ import annotations

import hashlib
import json
import pickle
import platform
import shutil
import sys
import tempfile
import zipfile
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import testctl
from testctl.execution.point import run_one
from testctl.metrics import key_of_others
from testctl.plan import Point
from testctl.results import layout, shapes
from testctl.results.atomic import check_room
from testctl.results.reader import read_json
from testctl.testbeds.ready import ReadyTestbed
from testctl_agent.spec import untrusted
from testctl_agent.spec.errors import PlanError, TestbedError, TestctlError

if TYPE_CHECKING:
    from distributed import Worker

Said = TypeVar("Said", "Parcel", "Fitness")

HOME = "testctl"
"""Below the worker's own directory, which Dask removes."""


@runtime_checkable
class Movable(Protocol):
    """A testbed that can be used on another machine."""

    def here(self) -> ReadyTestbed:
        """The same testbed with this machine's files.  Raises TestbedError if something is missing."""
        ...


@dataclass(frozen=True)
class Parcel:
    """A finished point's archive on the worker that ran it; `error`: why there is none."""

    worker: str
    path: str = ""
    size: int = 0
    sha256: str = ""
    verdict: str = ""
    wall_s: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Fitness:
    """A worker's description of itself; `problem`: why it can't run the points, "" if it can."""

    version: str
    code: str
    python: str
    problem: str = ""


class OddAnswer(TestbedError):
    """A worker's reply is invalid."""


def to_bytes(reply: Parcel | Fitness) -> bytes:
    """A worker's reply as JSON, so that no pickle is needed."""
    return json.dumps(asdict(reply)).encode()


def from_bytes(kind: type[Said], data: object) -> Said:
    """Parse a worker's reply.  Raises OddAnswer if it is invalid."""
    try:
        found: Any = untrusted.loads(data) if isinstance(data, bytes) else data
    except ValueError as error:
        raise OddAnswer(f"want a worker's {kind.__name__} as JSON; got {data!r:.100} ({error})") from error
    types = {"int": int, "float": float, "str": str}
    if why := untrusted.misfit(found, {one.name: types[str(one.type)] for one in fields(kind)}):
        raise OddAnswer(f"want a worker's {kind.__name__}; {why}")
    return kind(**{one.name: found[one.name] for one in fields(kind)})


@cache
def code_of() -> str:
    """Hash of the three packages' code on this machine, and of other distributions' metrics."""
    digest = hashlib.sha256(key_of_others().encode())
    for name in ("testctl", "testctl_agent", "testctl_cluster"):
        root = Path(str(sys.modules[name].__file__)).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{name}/{path.relative_to(root)}".encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def fitness_bytes(bed: ReadyTestbed) -> bytes:
    """fitness() as bytes, for a worker's reply."""
    return to_bytes(fitness(bed))


def fitness(bed: ReadyTestbed | None = None) -> Fitness:
    """The fitness of this machine, for a testbed if one is given."""
    problem = ""
    try:
        if bed is not None:
            _here(bed)
    except TestctlError as error:
        problem = str(error)
    return Fitness(testctl.__version__, code_of(), ".".join(platform.python_version_tuple()[:2]), problem)


_MADE: dict[bytes, ReadyTestbed] = {}


def _here(bed: ReadyTestbed) -> ReadyTestbed:
    """The local testbed, created once per worker: checking the kernel and the agents' files is slower than a point."""
    if not isinstance(bed, Movable):
        return bed
    key = pickle.dumps(bed)
    if key not in _MADE:
        _MADE[key] = bed.here()
    return _MADE[key]


def work(bed: ReadyTestbed, point: Point, code_key: str, code: str, keep_captures: bool) -> bytes:
    """Run one point here and pack its directory: a Parcel, with `error` if this worker can't run it."""
    from distributed import get_worker

    worker = get_worker()
    try:
        return to_bytes(_worked(worker, bed, point, code_key, code, keep_captures))
    except TestctlError as error:
        return to_bytes(Parcel(worker.address, error=str(error)))
    except OSError as error:
        return to_bytes(Parcel(worker.address, error=f"worker {worker.address}: {error}"))


def _worked(worker: Worker, bed: ReadyTestbed, point: Point, code_key: str, code: str, keep_captures: bool) -> Parcel:
    local = _here(bed)
    for what, want, got in (("code", code, code_of()), ("code key", code_key, local.code_key(point))):
        if want != got:
            raise TestbedError(f"worker {worker.address}: point {point.id}: want {what} {want}; got {got}")
    home = Path(worker.local_directory) / HOME
    home.mkdir(parents=True, exist_ok=True)
    run = Path(tempfile.mkdtemp(dir=home))
    try:
        (run / layout.POINTS).mkdir()
        verdict, wall_s = run_one(local, point, run, keep_captures)
        archive = home / f"{run.name}.zip"
        digest = pack(layout.point_dir(run, point.id), archive)
    finally:
        shutil.rmtree(run, ignore_errors=True)
    return Parcel(worker.address, str(archive), archive.stat().st_size, digest, verdict, wall_s)


def pack(directory: Path, archive: Path) -> str:
    """Archive a point's directory, whole or not at all; returns the archive's sha256."""
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:  # Parquet is compressed already
            for path in sorted(directory.rglob("*")):
                file.write(path, path.relative_to(directory))
        return sha256_of(archive)
    except BaseException:
        archive.unlink(missing_ok=True)
        raise


def unpack(archive: Path, directory: Path, point_id: str) -> str:
    """Unpack an archive of pack(); returns the point's verdict.  Writes only below the directory.

    Raises OddAnswer if it is not the archive of that point.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            for one in file.infolist():
                parts = one.filename.rstrip("/").split("/")
                if one.compress_type != zipfile.ZIP_STORED or not all(map(layout.is_name, parts)) or len(parts) > 2:
                    raise OddAnswer(f"want files of a point, not compressed; got {one.filename[:100]!r}")
            for one in file.infolist():
                check_room(directory, one.file_size)
                file.extract(one, directory)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        raise OddAnswer(f"want an archive of a point: {error}") from error
    try:
        reply = read_json(directory / layout.VERDICT, shapes.VERDICT)
        asked = read_json(directory / layout.POINT, shapes.POINT)
    except PlanError as error:
        raise OddAnswer(str(error)) from error
    if (reply["id"], asked.get("id")) != (point_id, point_id) or reply["verdict"] not in layout.VERDICTS:
        raise OddAnswer(f"want point {point_id}; got {reply['verdict']!r} of {reply['id']!r} and {asked.get('id')!r}")
    return str(reply["verdict"])


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def piece(path: str, offset: int, size: int) -> bytes:
    """`size` bytes of an archive from `offset`."""
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(size)


def drop(path: str) -> None:
    """Delete an archive that the controller has fetched."""
    Path(path).unlink(missing_ok=True)
