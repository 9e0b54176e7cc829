# SPDX-License-Identifier: Apache-2.0
"""Who may call an agent: real certificates, a real server, real handshakes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from testctl_agent.daemon import config, tls
from testctl_agent.daemon.auth import requests
from testctl_agent.daemon.service import DaemonService
from testctl_agent.spec.errors import TestbedError

from agents.tests.daemon.certificates import DAY, Authority, Signed, now
from agents.tests.daemon.daemons import Caller, calling, refused_start, running, written

Serving = Callable[..., tuple[DaemonService, config.DaemonConfig]]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "keys")


def keys(authority: Authority, own: Signed, **changes: Any) -> dict[str, Any]:
    """The "tls" of a configuration."""
    return {
        "authority": str(authority.file),
        "certificate": str(own.certificate),
        "key": str(own.key),
        "controllers": ["controller"],
    } | changes


def peer(authority: Authority, shown: Signed | None) -> grpc.ChannelCredentials:
    """A peer that trusts an authority and shows a certificate."""
    own = (shown.key.read_bytes(), shown.certificate.read_bytes()) if shown else (None, None)
    return grpc.ssl_channel_credentials(authority.file.read_bytes(), *own)


@pytest.fixture
def call_as(serving: Serving, authority: Authority, port: int, rig: ExitStack) -> Callable[..., Caller]:
    """Callers of one agent by TLS: by the certificate they show."""
    _, found = serving(listen=f"127.0.0.1:{port}", tls=keys(authority, authority.sign("alpha")))

    def call(shown: Signed | None, trusts: Authority = authority, name: str = "alpha") -> Caller:
        return rig.enter_context(calling(found.listen, peer(trusts, shown), name))

    return call


def test_the_controller_may_call(call_as: Callable[..., Caller], authority: Authority) -> None:
    controller = call_as(authority.sign("controller"))
    assert controller.call("Describe").name == "alpha"
    assert controller.refused("Restore")[0] == grpc.StatusCode.FAILED_PRECONDITION
    controller.acquire()
    controller.call("Restore")


METHODS = sorted(requests())
"""Every one that the wire has."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("name", "got"), [("beta", "beta"), ("alpha", "alpha"), ("", "none")])
def test_who_is_no_controller_may_call_nothing(
    call_as: Callable[..., Caller], authority: Authority, name: str, got: str, method: str
) -> None:
    """Another agent, this one itself, and one without a name: of this authority and in date."""
    said = call_as(authority.sign(name)).refused(method)
    assert said == (grpc.StatusCode.PERMISSION_DENIED, f"host alpha: want a certificate of controller; got {got}")


STRANGERS: dict[str, Callable[[Authority, Authority], Signed | None]] = {
    "none": lambda ours, theirs: None,
    "another authority's": lambda ours, theirs: theirs.sign("controller"),
    "expired": lambda ours, theirs: ours.sign("controller", now() - 3 * DAY, now() - DAY),
    "not yet valid": lambda ours, theirs: ours.sign("controller", now() + DAY, now() + 2 * DAY),
}
"""Certificates with which a handshake has to fail, by what is wrong with them."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shown", STRANGERS)
def test_tls_itself_refuses_others(
    call_as: Callable[..., Caller], authority: Authority, tmp_path: Path, shown: str, method: str
) -> None:
    """The error that they get contains nothing about the agent."""
    other = STRANGERS[shown](authority, Authority(tmp_path / "others"))
    code, words = call_as(other).refused(method)
    assert code == grpc.StatusCode.UNAVAILABLE
    assert "alpha" not in words
    assert call_as(authority.sign("controller")).call("Describe").name == "alpha", "the agent is there"


def test_the_controller_refuses_an_agent_of_another_name(
    call_as: Callable[..., Caller], authority: Authority, tmp_path: Path
) -> None:
    controller = authority.sign("controller")
    assert call_as(controller, name="beta").refused("Describe")[0] == grpc.StatusCode.UNAVAILABLE
    stranger = Authority(tmp_path / "others")
    assert call_as(controller, trusts=stranger).refused("Describe")[0] == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("method", METHODS)
def test_a_peer_without_tls_is_refused(call_as: Callable[..., Caller], port: int, rig: ExitStack, method: str) -> None:
    plain = rig.enter_context(calling(f"127.0.0.1:{port}"))
    assert plain.refused(method)[0] == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_may_read_is_refused(authority: Authority, mode: int) -> None:
    own = authority.sign("alpha")
    own.key.chmod(mode)
    found = config.Tls(authority.file, own.certificate, own.key, ("controller",))
    with pytest.raises(
        TestbedError, match=rf"alpha\.key: want a key that only its owner can read .*got mode {mode:04o}"
    ):
        tls.credentials("host alpha", "alpha", found)


def test_files_that_do_not_go_together_are_named(authority: Authority, tmp_path: Path) -> None:
    own, other = authority.sign("alpha"), authority.sign("beta")
    right = config.Tls(authority.file, own.certificate, own.key, ("controller",))
    wrong = {
        r"beta\.key: want the key of .*alpha\.crt, without a passphrase": {"key": other.key},
        r"beta\.crt: want a certificate of alpha; got one of beta": {
            "certificate": other.certificate,
            "key": other.key,
        },
        r"nothing: can't be read: No such file": {"authority": tmp_path / "nothing"},
        r"alpha\.key: want a certificate in PEM; got none": {"authority": own.key},
    }
    tls.credentials("host alpha", "alpha", right)
    for words, changes in wrong.items():
        with pytest.raises(TestbedError, match=words):
            tls.credentials("host alpha", "alpha", dataclasses.replace(right, **changes))


def test_an_expired_certificate_of_its_own_is_said_at_start(authority: Authority, tmp_path: Path, port: int) -> None:
    own = authority.sign("alpha", now() - 3 * DAY, now() - DAY)
    path = written(tmp_path, listen=f"127.0.0.1:{port}", tls=keys(authority, own))
    code, said = refused_start(path)
    assert (code, said.count("\n")) == (3, 1)
    assert said.startswith(f"testctl-agent: host alpha: its certificate {own.certificate} expired at ")


def test_a_daemon_keeps_its_secrets(authority: Authority, tmp_path: Path, port: int) -> None:
    """One whole life by TLS, after which its log has neither key nor token, and says who had the lease."""
    own = authority.sign("alpha", now() - DAY, now() + 5 * DAY)
    path = written(tmp_path, listen=f"127.0.0.1:{port}", tls=keys(authority, own))
    controller, stranger = authority.sign("controller"), authority.sign("beta")
    with running(path) as daemon:
        with calling(f"127.0.0.1:{port}", peer(authority, controller), "alpha") as caller:
            token = caller.acquire("controller@desk").token
            assert len(token) == 64
            caller.call("Renew")
            caller.start("c", "collector", "counters", devices="lo")
            caller.call("Release")
        with calling(f"127.0.0.1:{port}", peer(authority, stranger), "alpha") as caller:
            caller.refused("Describe")
        assert daemon.end() == 0
        log = daemon.log
    assert token not in log
    assert not any(line in log for line in own.key.read_text().splitlines())
    for words in ("leased to controller@desk for 60 s", "refused ipv4:127.0.0.1", "expires at"):
        assert words in log
