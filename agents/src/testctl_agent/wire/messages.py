# SPDX-License-Identifier: Apache-2.0
"""The messages of agent.proto as plain classes: what an agent and its caller work with on every channel.

gRPC carries them as protobuf (protobuf.py), which takes long to import; within a lab they are pickled.  Each class has
the name and the fields of a message of agent.proto, in its order; a message Value is the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, dataclass_transform

from testctl_agent.spec.types import Value

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass_transform(kw_only_default=True)
class Message:
    """Fields by keyword; one that is not given has its class's value."""

    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(cls.__annotations__)

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - set(self.fields):
            raise TypeError(f"{type(self).__name__}: want {', '.join(self.fields) or 'nothing'}; got {unknown}")
        self.__dict__.update(values)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, field) == getattr(other, field) for field in self.fields)

    __hash__ = None  # type: ignore[assignment]  # its fields can be set

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.fields)})"


class Setting(Message):
    entity: str = ""
    parameter: str = ""
    value: Value = ""


class DescribeRequest(Message):
    parameters: Sequence[str] = ()


class Capability(Message):
    """value: None where it can't be read."""

    parameter: str = ""
    entity: str = ""
    missing: str = ""
    value: Value | None = None


class Description(Message):
    name: str = ""
    kind: str = ""
    version: str = ""
    kernel: str = ""
    capabilities: Sequence[Capability] = ()
    notes: Mapping[str, str] = _NONE


class ApplyRequest(Message):
    settings: Sequence[Setting] = ()


class ApplyReply(Message):
    before: Sequence[Setting] = ()
    after: Sequence[Setting] = ()


class RestoreRequest(Message):
    pass


class RestoreReply(Message):
    restored: Sequence[Setting] = ()


class StartRequest(Message):
    task: str = ""
    kind: str = ""
    name: str = ""
    options: Mapping[str, Value] = _NONE


class StartReply(Message):
    files: Sequence[str] = ()


class WaitRequest(Message):
    task: str = ""
    timeout_ns: int = 0


class StopRequest(Message):
    task: str = ""


class TaskStatus(Message):
    ended: bool = False
    ok: bool = False
    error: str = ""
    result: str = ""
    files: Sequence[str] = ()


class FetchRequest(Message):
    task: str = ""
    file: str = ""


class Chunk(Message):
    data: bytes = b""
    sha256: str = ""


class AttestRequest(Message):
    pass


class Attestation(Message):
    facts: Mapping[str, str] = _NONE


class AcquireRequest(Message):
    holder: str = ""
    lifetime_ns: int = 0
    ticket: str = ""


class QueueRequest(Message):
    ticket: str = ""
    holder: str = ""
    leave: bool = False
    keep: bool = False


class BootRequest(Message):
    limit_ns: int = 0


class BootReply(Message):
    pass


class QueuePlace(Message):
    holder: str = ""
    since_ns: int = 0


class QueueReply(Message):
    before: int = 0
    leased_to: str = ""
    leased_ns: int = 0
    left_ns: int = 0
    places: Sequence[QueuePlace] = ()


class RenewRequest(Message):
    pass


class ReleaseRequest(Message):
    pass


class ReleaseReply(Message):
    restored: Sequence[Setting] = ()


class Lease(Message):
    token: str = ""
    holder: str = ""
    lifetime_ns: int = 0
    time_ns: int = 0


def plain(value: Value) -> Value:
    """A value as it arrives on every channel: a Duration or a Rate is a mere number there."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else str(value)


def plain_options(options: Mapping[str, Value]) -> dict[str, Value]:
    """The options of a generator or a collector as they arrive."""
    return {name: plain(value) for name, value in options.items()}
