# SPDX-License-Identifier: Apache-2.0
"""Channels to the agents of a rack: mutual TLS, messages for failed calls, files with their checksums."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from testctl.results.atomic import check_room, naming_path
from testctl_agent.daemon import LEASE_KEY
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError

from testctl_rack.grpc_agents import MESSAGE_BYTES, message_of
from testctl_rack.inventory_file import KEY_FILES, Machine

CONNECT_S = 5.0
"""How long an attempt to connect may take."""
ANSWER_S = 20.0
"""How long an agent has for a short call; its machine may be slow, or the network that leads to it."""
LOOK_LIFETIME_S = 1.0
"""The longest that a look whether an agent is free keeps others from it."""
HELD = grpc.StatusCode.ABORTED
"""What an agent answers whose lease somebody else has."""
DISTRUST = ("certificate_verify_failed", "hostname verification", "peer name", "alert", "wrong_version_number")
"""Texts in gRPC's messages that show a failure of TLS, not of the network."""
CHECK_BYTES = 64 << 20
"""Bytes of a received file after which the free disk space is checked again."""
NO_METHOD = "Method not found!"
"""gRPC's message from an agent that does not have the method."""


@dataclass(frozen=True)
class Keys:
    """The controller's side of mutual TLS, as PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


def read_keys(directory: Path) -> Keys:
    """Read the files.  Raises TestbedError with the file's name, never with its content."""
    contents = []
    for name in KEY_FILES:
        path = directory / name
        try:
            if name.endswith(".key") and path.stat().st_mode & 0o077:
                raise TestbedError(f"{path}: others can read this key; want: chmod 600 {path}")
            contents.append(path.read_bytes())
        except OSError as error:
            raise TestbedError(
                f"{path}: {error.strerror}; deploy the rack first (playbooks/deploy.yml), or see: testctl keys"
            ) from error
    return Keys(*contents)


def open_channel(machine: Machine, keys: Keys) -> grpc.Channel:
    """A channel that accepts only the agent with this machine's certificate."""
    credentials = grpc.ssl_channel_credentials(keys.authority, keys.key, keys.certificate)
    options = [
        ("grpc.ssl_target_name_override", machine.name),
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", int(CONNECT_S * 1000)),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    return grpc.secure_channel(machine.listen, credentials, options)


def describe(stub: Any) -> pb.Description:
    """An agent's description, of one parameter: of all that it could have takes a slow host seconds."""
    description: pb.Description = stub.Describe(pb.DescribeRequest(parameters=["kernel"]), timeout=ANSWER_S)
    return description


def look(stub: Any, who: str, ticket: str) -> tuple[pb.Lease, int]:
    """A lease of a free agent, which is released at once, and when it came, in ns of this machine's clock.

    Raises grpc.RpcError where somebody has one.  A Release that comes late, between slow
    machines, is refused: the agent has ended the lease itself.
    """
    begun = time.monotonic()
    request = pb.AcquireRequest(holder=who, lifetime_ns=int(LOOK_LIFETIME_S * 1e9), ticket=ticket)
    lease, came_ns = stub.Acquire(request, timeout=ANSWER_S), time.time_ns()
    try:
        stub.Release(pb.ReleaseRequest(), timeout=ANSWER_S, metadata=[(LEASE_KEY, lease.token)])
    except grpc.RpcError:
        if time.monotonic() - begun < LOOK_LIFETIME_S:
            raise
    return lease, came_ns


def can_not(error: grpc.RpcError) -> bool:
    """Whether an agent reports that its machine does not support the request, and not that the call is unknown."""
    return error.code() is grpc.StatusCode.UNIMPLEMENTED and message_of(error) != NO_METHOD


def explain(who: str, error: grpc.RpcError | ValueError) -> str:
    """The error of a failed call: what, where, and what to do about it (ValueError: the channel is closed)."""
    if isinstance(error, ValueError):
        return f"{who}: {error}"
    text = message_of(error)
    code = error.code()
    if code is grpc.StatusCode.UNAVAILABLE:
        if any(reason in text.lower() for reason in DISTRUST):
            return (
                f"{who}: no mutual trust: {text}; want certificates of one authority, in date, each with its own name"
            )
        return f"{who}: not reachable: {text}; is the host up, and its agent (systemctl status testctl-agent)?"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"{who}: did not answer in time"
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return (
            f"{who}: its agent is of another version ({text}); deploy it again: ansible-playbook playbooks/deploy.yml"
        )
    return f"{who}: {text}"


def below(directory: Path, file: str, what: str) -> Path:
    """Where a file goes that an agent named.  Raises TestbedError for a name that leads anywhere else."""
    if file in ("", ".", "..") or "/" in file or not file.isprintable():
        raise TestbedError(f"{what}: want the name of a file; got {file[:200]!r}")
    return directory / file


def write_checked(chunks: Iterable[pb.Chunk], to: Path, what: str) -> None:
    """Write a stream of Chunk messages to a file, whole or not at all.

    Raises TestbedError when its checksum is not theirs, the file can't be written, or it would fill the disk.
    """
    fresh = to.with_name(f".{to.name}.part")
    digest, wanted = hashlib.sha256(), ""
    with naming_path(to, f"{what} is not kept"):
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            with fresh.open("wb") as file:
                checked = 0
                for chunk in chunks:
                    if (checked := checked - len(chunk.data)) <= 0:
                        check_room(fresh, CHECK_BYTES)
                        checked = CHECK_BYTES
                    file.write(chunk.data)
                    digest.update(chunk.data)
                    wanted = chunk.sha256 or wanted
            if wanted != digest.hexdigest():
                raise TestbedError(f"{what}: want the SHA-256 {wanted or 'at its end'}; got {digest.hexdigest()}")
            fresh.replace(to)
        finally:
            fresh.unlink(missing_ok=True)
