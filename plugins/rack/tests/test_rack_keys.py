# SPDX-License-Identifier: Apache-2.0
"""The certificates of `testctl keys` in the hands of an agent: who may call it with which, by every method."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.auth import requests
from testctl_rack import pki
from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import Machine
from testctl_rack.mtls import open_channel, read_keys

from agents.tests.daemon.daemons import Caller, calling, running, written

METHODS = sorted(requests())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rack's keys, and another rack's."""
    place = tmp_path_factory.mktemp("keys")
    pki.make(place / "ours", ["alpha", "beta"], controllers=["second", "third"])
    pki.make(place / "theirs", ["alpha", "beta"])
    return place


@pytest.fixture(scope="module")
def listen(folder: Path) -> Iterator[str]:
    """Where agent alpha listens, with the first rack's keys."""
    with closing(socket.create_server(("127.0.0.1", 0))) as sock:
        address = f"127.0.0.1:{sock.getsockname()[1]}"
    tls = {
        "authority": str(folder / "ours" / "ca.crt"),
        "certificate": str(folder / "ours" / "alpha.crt"),
        "key": str(folder / "ours" / "alpha.key"),
        "controllers": [pki.CONTROLLER, "second"],
    }
    with running(written(folder, listen=address, tls=tls)):
        yield address


@pytest.fixture
def caller(request: pytest.FixtureRequest, folder: Path, listen: str) -> Iterator[Caller]:
    """Calls alpha, trusting its authority, with the certificate of that name in that directory."""
    place, name = request.param
    files = [folder / place / f"{name}.{what}" for what in ("key", "crt")]
    authority = (folder / "ours" / "ca.crt").read_bytes()
    credentials = grpc.ssl_channel_credentials(authority, *(file.read_bytes() for file in files))
    with calling(listen, credentials, "alpha") as found:
        yield found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "caller", [("ours", "alpha"), ("ours", "beta"), ("theirs", "controller"), ("theirs", "beta")], indirect=True
)
def test_an_agents_certificate_and_another_racks_are_refused(caller: Caller, method: str) -> None:
    assert caller.refused(method)[0] == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("caller", [("ours", "third")], indirect=True)
def test_a_controller_that_the_agent_does_not_know_is_refused(caller: Caller, method: str) -> None:
    assert caller.refused(method)[0] == grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("caller", [("ours", "controller"), ("ours", "second")], indirect=True)
def test_the_controllers_are_not(caller: Caller) -> None:
    caller.acquire()
    caller.call("Renew")
    caller.call("Restore")
    caller.call("Release")


@pytest.mark.parametrize(("name", "place"), [("beta", "ours"), ("alpha", "theirs")])
def test_the_controller_refuses_whom_it_did_not_ask_for(folder: Path, listen: str, name: str, place: str) -> None:
    with open_channel(Machine(name, "host", listen), read_keys(folder / place)) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            Stub(channel).Describe(pb.DescribeRequest(), timeout=120)
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
