# SPDX-License-Identifier: Apache-2.0
"""Agents as processes of their own, and what it takes to call them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon import agent_pb2_grpc as rpc
from testctl_agent.daemon.protobuf import from_wire, to_wire
from testctl_agent.spec.types import Value

START_S = 60.0
CALL_S = 60.0
FAKE_AGENT = Path(__file__).parents[1] / "switch/fake_agent.py"
SWITCH = {"name": "s1", "kind": "switch", "devices": {"s1:alpha": "lo"}, "backend": "fake", "lease": True}
"""Changes of written() by which the agent is a switch's, with leases."""


def written(folder: Path, **changes: Any) -> Path:
    """A configuration file for host alpha on the loopback device, below `folder`; None removes a key."""
    config = {
        "name": "alpha",
        "kind": "host",
        "devices": {"alpha": "lo"},
        "listen": f"unix:{folder}/alpha.sock",
        "workdir": str(folder / "work"),
        "journal": str(folder / "journal.jsonl"),
    }
    path = folder / "alpha.json"
    kept = {key: value for key, value in (config | changes).items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")
    return path


def _program(config: Path) -> list[str]:
    """The agent's command; for a configuration with the back end "fake" the one that has it."""
    fake = '"backend": "fake"' in config.read_text(encoding="utf-8")
    return [sys.executable, str(FAKE_AGENT)] if fake else [sys.executable, "-m", "testctl_agent"]


class Daemon:
    """One `testctl-agent serve`, from its "ready" on; `log` is its standard error."""

    def __init__(
        self, config: Path, env: Mapping[str, str] | None = None, before: Sequence[str] = (), cwd: str = "/"
    ) -> None:
        self.log_file = config.with_suffix(".log")
        argv = [*before, *_program(config), "serve", "--config", str(config)]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **(env or {})}, cwd=cwd
            )
        self.pid = self.process.pid
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        said = self.process.stdout.readline() if ready else b""
        if said != b"ready\n":
            self.kill()
            raise AssertionError(f"want ready; got {said!r}\n{self.log}")

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8")

    def kill(self) -> None:
        """As a crash: nothing of it runs any more."""
        self.process.kill()
        self._wait()

    def end(self) -> int:
        """As a service manager does it; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        code = self.process.wait(START_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextmanager
def running(config: Path, **how: Any) -> Iterator[Daemon]:
    """A daemon that is ended, by force if need be."""
    daemon = Daemon(config, **how)
    try:
        yield daemon
    finally:
        if daemon.process.poll() is None:
            daemon.kill()


def refused_start(config: Path, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """(exit code, standard error) of a daemon that has to refuse to start."""
    argv = [*_program(config), "serve", "--config", str(config)]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=START_S, check=False, env={**os.environ, **(env or {})}
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


class Caller:
    """A controller with at most one lease."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        new_stub: Any = rpc.AgentStub
        self.stub = new_stub(channel)
        self.token = ""

    def call(self, method: str, request: Any = None) -> Any:
        """The reply; raises grpc.RpcError."""
        request = request if request is not None else getattr(pb, f"{method}Request")()
        metadata = [("testctl-lease", self.token)] if self.token else []
        return getattr(self.stub, method)(request, metadata=metadata, timeout=CALL_S)

    def acquire(self, holder: str = "a test", lifetime_s: float = 60.0) -> Any:
        lease = self.call("Acquire", pb.AcquireRequest(holder=holder, lifetime_ns=int(lifetime_s * 1e9)))
        self.token = lease.token
        return lease

    def set(self, **values: int | str) -> Any:
        """Apply parameters of alpha."""
        settings = [pb.Setting(entity="alpha", parameter=name, value=to_wire(value)) for name, value in values.items()]
        return self.call("Apply", pb.ApplyRequest(settings=settings))

    def set_rate(self, rate: int) -> Any:
        """Of the port of SWITCH."""
        setting = pb.Setting(entity="s1:alpha", parameter="rate", value=to_wire(rate))
        return self.call("Apply", pb.ApplyRequest(settings=[setting]))

    def rate(self) -> Value:
        (rate,) = [one for one in self.call("Describe").capabilities if one.parameter == "rate"]
        return from_wire(rate.value)

    def acquired(self, lifetime_s: float = 60.0) -> bool:
        """Whether there is a lease for it now."""
        self.token = ""
        with suppress(grpc.RpcError):
            self.acquire("the next", lifetime_s)
        return bool(self.token)

    def start(self, task: str, kind: str, name: str, **options: int | str) -> Any:
        wire = {key: to_wire(value) for key, value in options.items()}
        return self.call("Start", pb.StartRequest(task=task, kind=kind, name=name, options=wire))

    def facts(self) -> dict[str, str]:
        """The attestation."""
        return dict(self.call("Attest").facts)

    def refused(self, method: str, request: Any = None) -> tuple[grpc.StatusCode, str]:
        """(status, words) of a call that has to be refused."""
        try:
            reply = self.call(method, request)
            if method == "Fetch":
                next(reply)  # a stream says what it has to say when it is read
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        raise AssertionError(f"{method} was not refused")


@contextmanager
def calling(address: str, credentials: grpc.ChannelCredentials | None = None, name: str = "") -> Iterator[Caller]:
    """A caller at an address; with TLS the agent has to be called `name`."""
    options = [("grpc.ssl_target_name_override", name)] if name else []
    channel = (
        grpc.secure_channel(address, credentials, options) if credentials else grpc.insecure_channel(address, options)
    )
    try:
        yield Caller(channel)
    finally:
        channel.close()
