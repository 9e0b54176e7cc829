# SPDX-License-Identifier: Apache-2.0
"""A worker that is somebody else's runs nothing on the controller, and a cluster is reached by TLS."""

from __future__ import annotations

import asyncio
import errno
import os
import pickle
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from testctl.results import PointResult, RunWriter, atomic, write_point
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_cluster import ClusterPool, pool, worker
from testctl_cluster.inert import NotUnpickled, loads
from testctl_cluster.worker import OddAnswer, Parcel, from_bytes, pack, to_bytes, unpack

from plugins.cluster.tests.dask import dask
from plugins.cluster.tests.test_cluster import bed, files, go, plan


@pytest.mark.parametrize("how", ["fitness", "fitness raises", "work", "work raises", "work exits", "other point"])
def test_what_a_worker_answers_is_not_run(tmp_path: Path, how: str) -> None:
    mark = tmp_path / "unpickled"
    mark.mkdir()
    with dask(tmp_path, workers=0) as cluster:
        preload = ("--preload", "plugins.cluster.tests.hostile")
        cluster.worker(*preload, TESTCTL_HOSTILE=how, TESTCTL_MARK=str(mark))
        try:
            run = go(1, bed(tmp_path), tmp_path, "run", ClusterPool(cluster.address))
        except TestbedError as error:
            said = str(error)
        else:
            said = run.points[0].reason
            assert run.points[0].verdict == "broken"
    assert said
    assert not (mark / str(os.getpid())).exists()


def certificate(where: Path) -> dict[str, str]:
    """One that is its own authority, as entries of Dask's configuration."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dask")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (where / "crt").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    (where / "key").write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    found = {"ca-file": str(where / "crt")}
    for who in ("scheduler", "worker", "client"):
        found |= {f"{who}.cert": str(where / "crt"), f"{who}.key": str(where / "key")}
    return {f"distributed.comm.tls.{name}": value for name, value in found.items()}


def test_over_tls(tmp_path: Path) -> None:
    from dask import config

    entries = certificate(tmp_path)
    environment = {f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": v for name, v in entries.items()}
    with dask(tmp_path, workers=1, protocol="tls", **environment) as cluster:
        assert cluster.address.startswith("tls://")
        with pytest.raises(TestbedError, match=r"--cluster tls://.*certificates in Dask's configuration"):
            go(1, bed(tmp_path), tmp_path, "without", ClusterPool(cluster.address))
        with config.set(entries):
            there = go(3, bed(tmp_path), tmp_path, "there", ClusterPool(cluster.address))
    assert len(files(there)) > 3
    assert {point.verdict for point in there.points} == {"skip"}


@pytest.mark.parametrize(
    "address",
    [
        "tcp://10.0.0.1:8786", "10.0.0.1:8786", "tcp://[2001:db8::1]:8786", "dask:8786", "ws://10.0.0.1:8786",
        "ucx://10.0.0.1:8786",
    ],
)  # fmt: skip
def test_another_machine_is_reached_by_tls(address: str) -> None:
    with pytest.raises(PlanError, match=r"want tls://.*--insecure"):
        ClusterPool(address)
    assert ClusterPool(address, insecure=True).address == address
    for safe in ("tls://10.0.0.1:8786", "wss://10.0.0.1:8786", "ws://127.0.0.1:8786", "inproc://10.0.0.1/5/1"):
        ClusterPool(safe)


@pytest.mark.parametrize("address", ["tcp://[::1", "[::1:8786", "tls://[x]:8786"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(PlanError, match="want the address of a Dask scheduler, such as tls://"):
        ClusterPool(address)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"5", b'{"worker": 5}', b"[" * 100_000, None, Exception("x"), Parcel("a")]
)
def test_a_parcel_that_is_none(data: object) -> None:
    with pytest.raises(OddAnswer, match=r"want a worker's Parcel"):
        from_bytes(Parcel, data)
    assert from_bytes(Parcel, to_bytes(Parcel("a", "b", 3))) == Parcel("a", "b", 3)


def test_a_pickle_is_read_without_anything_being_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> object:
            return Path.touch, (tmp_path / "mark",)

    assert isinstance(loads(pickle.dumps(Evil())), NotUnpickled)
    assert isinstance(loads(pickle.dumps([print, {1}, OSError(5, "x")]))[2], OSError)
    for kind in (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        assert isinstance(loads(pickle.dumps(kind(0))), NotUnpickled)
    for text in (
        b"cos\nsystem\n(S'touch mark'\ntR.",
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"cbuiltins\nexec\n(S'1'\ntR.",
    ):
        assert isinstance(loads(text), NotUnpickled)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("name", ["../x", "/x", "a/b/c", "a\nb", ".hidden"])
def test_an_archive_of_other_names(tmp_path: Path, name: str) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "zip", "w") as file:
        file.writestr(name, "x")
    with pytest.raises(OddAnswer, match="want files of a point"):
        unpack(tmp_path / "zip", tmp_path / "into", "cafe")
    assert not (tmp_path / "into").exists()


def test_an_archive_that_would_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries may all be the same bytes of it."""
    import zipfile

    with zipfile.ZipFile(tmp_path / "zip", "w") as file:
        for name in ("a", "b", "c"):
            file.writestr(name, b"x" * 1000)
    monkeypatch.setattr(atomic, "KEPT_FREE", shutil.disk_usage(tmp_path).free + (1 << 40))
    with pytest.raises(TestbedError, match="to stay free; what comes would leave"):
        unpack(tmp_path / "zip", tmp_path / "into", "cafe")
    assert not list((tmp_path / "into").glob("*"))


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_worker_whose_disk_is_full_is_named_and_leaves_it_no_fuller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing, point, home = bed(tmp_path), plan(1).points[0], tmp_path / "home"
    here = SimpleNamespace(address="tcp://10.0.0.1:5", local_directory=str(home))
    monkeypatch.setattr("distributed.get_worker", lambda: here)
    monkeypatch.setattr("zipfile.ZipFile.write", full)
    said = from_bytes(Parcel, worker.work(hashing, point, hashing.code_key(point), worker.code_of(), False))
    assert said.error == "worker tcp://10.0.0.1:5: [Errno 28] No space left on device"
    assert list((home / worker.HOME).iterdir()) == []


def test_an_archive_that_is_here_is_whole_whatever_its_worker_says_then(tmp_path: Path) -> None:
    def ask(parcel: Parcel, what: object, *_: object) -> object:
        if what is worker.drop:
            raise OddAnswer("a worker's answer can't be read")
        return b"abc"

    gathering = pool._Gathering.__new__(pool._Gathering)
    gathering._ask = ask
    assert gathering._pieces(Parcel("tcp://10.0.0.1:5", size=3), tmp_path / "zip")
    assert (tmp_path / "zip").read_bytes() == b"abc"


def test_an_archive_of_another_point(tmp_path: Path) -> None:
    writer = RunWriter.create_at(tmp_path / "run", need=0)
    pack(write_point(writer.path, PointResult({"id": "beef"}, "pass")), tmp_path / "zip")
    with pytest.raises(OddAnswer, match="want point cafe; got 'pass' of 'beef'"):
        unpack(tmp_path / "zip", tmp_path / "into", "cafe")
    assert unpack(tmp_path / "zip", tmp_path / "into", "beef") == "pass"
