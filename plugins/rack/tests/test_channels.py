# SPDX-License-Identifier: Apache-2.0
"""Failed calls in words, files with their checksums, clocks from one exchange, devices of an attestation."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_rack.inventory_file import Machine
from testctl_rack.leased_agents import LEASE, LEASE_S, offset, seconds
from testctl_rack.mtls import CONNECT_S, LOOK_LIFETIME_S, can_not, explain, look, read_keys, write_checked
from testctl_rack.rack import lacking_device

WHO = "host beta (192.0.2.12:7400)"


class Refused(grpc.RpcError):
    """A call that failed, as gRPC hands it over."""

    def __init__(self, code: grpc.StatusCode, details: str | None) -> None:
        super().__init__()
        self._said = code, details

    def code(self) -> grpc.StatusCode:
        return self._said[0]

    def details(self) -> str | None:
        return self._said[1]


@pytest.mark.parametrize(
    ("code", "details", "words"),
    [
        ("UNAVAILABLE", "Connection refused", "not reachable: Connection refused; is the host up, and its agent"),
        ("UNAVAILABLE", "Ssl handshake failed: CERTIFICATE_VERIFY_FAILED: expired", "no mutual trust: Ssl handshake"),
        ("UNAVAILABLE", "UNAUTHENTICATED: Hostname Verification Check failed.", "no mutual trust: UNAUTHENTICATED"),
        ("UNAVAILABLE", "Peer name beta is not in peer certificate", "no mutual trust: Peer name beta"),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", "did not answer in time"),
        ("UNIMPLEMENTED", "Method not found!", "its agent is of another version (Method not found!); deploy it again"),
        ("ABORTED", "host beta: leased to me", "host beta: leased to me"),
        ("INTERNAL", None, "INTERNAL"),
    ],
)
def test_a_failed_call_in_words(code: str, details: str | None, words: str) -> None:
    assert explain(WHO, Refused(grpc.StatusCode[code], details)).startswith(f"{WHO}: {words}")


def test_a_closed_channel_in_words() -> None:
    with grpc.insecure_channel("unix:/nowhere") as channel:
        call = channel.unary_unary("/nothing")
    with pytest.raises(ValueError, match="closed channel") as closed:
        call(b"", timeout=CONNECT_S)
    assert explain(WHO, closed.value) == f"{WHO}: {closed.value}"


def test_what_a_machine_can_not_have_is_not_an_older_agent() -> None:
    assert can_not(Refused(grpc.StatusCode.UNIMPLEMENTED, "device eth1 (veth) has no rings"))
    assert not can_not(Refused(grpc.StatusCode.UNIMPLEMENTED, "Method not found!"))
    assert not can_not(Refused(grpc.StatusCode.ABORTED, "leased"))


@given(st.lists(st.binary(max_size=64), max_size=5))
def test_a_file_that_is_whole(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    to = tmp_path_factory.mktemp("fetched") / "task" / "file"
    digest = hashlib.sha256(b"".join(parts)).hexdigest()
    write_checked([*(pb.Chunk(data=part) for part in parts), pb.Chunk(sha256=digest)], to, "beta, task, file")
    assert to.read_bytes() == b"".join(parts)
    assert [path.name for path in to.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("end", [[], [pb.Chunk(sha256=hashlib.sha256(b"other").hexdigest())]])
def test_a_file_that_is_not(tmp_path: Path, end: list[pb.Chunk]) -> None:
    got = hashlib.sha256(b"data").hexdigest()
    with pytest.raises(TestbedError, match=rf"^beta, task, file: want the SHA-256 .*; got {got}$"):
        write_checked([pb.Chunk(data=b"data"), *end], tmp_path / "file", "beta, task, file")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "task").write_bytes(b"")
    with pytest.raises(TestbedError, match=r"task/file: .*; beta, task, file is not kept$"):
        write_checked([], tmp_path / "task" / "file", "beta, task, file")


@given(ahead_ns=st.integers(-(10**12), 10**12), there_ns=st.integers(0, 10**9), back_ns=st.integers(0, 10**9))
def test_an_offset_is_wrong_by_its_error_at_most(ahead_ns: int, there_ns: int, back_ns: int) -> None:
    before_ns = 10**18
    after_ns = before_ns + there_ns + back_ns
    offset_ns, error_ns = offset(before_ns, before_ns + there_ns + ahead_ns, after_ns)
    assert abs(offset_ns - ahead_ns) <= error_ns + 1
    assert error_ns <= (there_ns + back_ns) / 2


def test_how_long_a_lease_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEASE, raising=False)
    assert seconds(LEASE, LEASE_S, 1, 60) == LEASE_S
    monkeypatch.setenv(LEASE, "2.5")
    assert seconds(LEASE, LEASE_S, 1, 60) == 2.5


@pytest.mark.parametrize("text", ["0", "61", "-1", "nan", "ten"])
def test_how_long_no_lease_lasts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEASE, text)
    with pytest.raises(PlanError, match=rf"^TESTCTL_LEASE_S: want seconds from 1 to 60; got '{text}'$"):
        seconds(LEASE, LEASE_S, 1, 60)


def test_devices_of_the_inventory_and_of_the_machine() -> None:
    beta = Machine("beta", "host", "192.0.2.12:7400", device="eth1")
    facts = {"kernel": "6.1", "link eth1 mtu": "1500", "link eth1 address": "02:00:00:00:00:02"}
    assert lacking_device(beta, facts) == ""
    other = lacking_device(beta, {"link eth2 mtu": "1500"})
    assert other == f"{WHO}: device: want eth1; got eth2; is the inventory that of the deployment?"
    assert lacking_device(beta, facts | {"link eth1 mtu": "can't be read: none"}).endswith(
        "device eth1: can't be read: none"
    )
    switch = Machine("s1", "switch", "192.0.2.21:7400", ports={"alpha": "p1", "beta": "p2"})
    assert "want p2; got p1;" in lacking_device(switch, {"link p1 mtu": "1500"})


def test_keys_that_are_not_there_and_that_others_read(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"ca\.crt: No such file or directory; deploy the rack first"):
        read_keys(tmp_path)
    for name in ("ca.crt", "controller.crt", "controller.key"):
        (tmp_path / name).write_bytes(b"secret")
    (tmp_path / "controller.key").chmod(0o640)
    with pytest.raises(TestbedError, match=r"controller\.key: others can read this key") as refused:
        read_keys(tmp_path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("late", [True, False])
def test_an_agent_is_free_also_when_the_look_takes_longer_than_its_lease(
    late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((10.0, 10.0 + LOOK_LIFETIME_S * (1.5 if late else 0.5)))
    monkeypatch.setattr("testctl_rack.mtls.time.monotonic", lambda: next(clock))

    def release(*_: object, **__: object) -> None:
        raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "Release wants a lease; the one given has ended")

    agent = SimpleNamespace(Acquire=lambda *_, **__: pb.Lease(token="ab", time_ns=7), Release=release)
    with nullcontext() if late else pytest.raises(Refused):
        assert look(agent, "ann", "")[0].time_ns == 7
