# SPDX-License-Identifier: Apache-2.0
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Value(_message.Message):
    __slots__ = ("integer", "text", "flag", "number")
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FLAG_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    integer: int
    text: str
    flag: bool
    number: float
    def __init__(self, integer: _Optional[int] = ..., text: _Optional[str] = ..., flag: _Optional[bool] = ..., number: _Optional[float] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ("entity", "parameter", "value")
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    entity: str
    parameter: str
    value: Value
    def __init__(self, entity: _Optional[str] = ..., parameter: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("parameters",)
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    parameters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, parameters: _Optional[_Iterable[str]] = ...) -> None: ...

class Capability(_message.Message):
    __slots__ = ("parameter", "entity", "missing", "value")
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    parameter: str
    entity: str
    missing: str
    value: Value
    def __init__(self, parameter: _Optional[str] = ..., entity: _Optional[str] = ..., missing: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Description(_message.Message):
    __slots__ = ("name", "kind", "version", "kernel", "capabilities", "notes")
    class NotesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    version: str
    kernel: str
    capabilities: _containers.RepeatedCompositeFieldContainer[Capability]
    notes: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., version: _Optional[str] = ..., kernel: _Optional[str] = ..., capabilities: _Optional[_Iterable[_Union[Capability, _Mapping]]] = ..., notes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ApplyRequest(_message.Message):
    __slots__ = ("settings",)
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    settings: _containers.RepeatedCompositeFieldContainer[Setting]
    def __init__(self, settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ...) -> None: ...

class ApplyReply(_message.Message):
    __slots__ = ("before", "after")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    before: _containers.RepeatedCompositeFieldContainer[Setting]
    after: _containers.RepeatedCompositeFieldContainer[Setting]
    def __init__(self, before: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., after: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ...) -> None: ...

class RestoreRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RestoreReply(_message.Message):
    __slots__ = ("restored",)
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    restored: _containers.RepeatedCompositeFieldContainer[Setting]
    def __init__(self, restored: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ...) -> None: ...

class StartRequest(_message.Message):
    __slots__ = ("task", "kind", "name", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    TASK_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    task: str
    kind: str
    name: str
    options: _containers.MessageMap[str, Value]
    def __init__(self, task: _Optional[str] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ..., options: _Optional[_Mapping[str, Value]] = ...) -> None: ...

class StartReply(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, files: _Optional[_Iterable[str]] = ...) -> None: ...

class WaitRequest(_message.Message):
    __slots__ = ("task", "timeout_ns")
    TASK_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_NS_FIELD_NUMBER: _ClassVar[int]
    task: str
    timeout_ns: int
    def __init__(self, task: _Optional[str] = ..., timeout_ns: _Optional[int] = ...) -> None: ...

class StopRequest(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: str
    def __init__(self, task: _Optional[str] = ...) -> None: ...

class TaskStatus(_message.Message):
    __slots__ = ("ended", "ok", "error", "result", "files")
    ENDED_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    ended: bool
    ok: bool
    error: str
    result: str
    files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ended: _Optional[bool] = ..., ok: _Optional[bool] = ..., error: _Optional[str] = ..., result: _Optional[str] = ..., files: _Optional[_Iterable[str]] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("task", "file")
    TASK_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    task: str
    file: str
    def __init__(self, task: _Optional[str] = ..., file: _Optional[str] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("data", "sha256")
    DATA_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    sha256: str
    def __init__(self, data: _Optional[bytes] = ..., sha256: _Optional[str] = ...) -> None: ...

class AttestRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Attestation(_message.Message):
    __slots__ = ("facts",)
    class FactsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    FACTS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.ScalarMap[str, str]
    def __init__(self, facts: _Optional[_Mapping[str, str]] = ...) -> None: ...

class AcquireRequest(_message.Message):
    __slots__ = ("holder", "lifetime_ns", "ticket")
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_NS_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    holder: str
    lifetime_ns: int
    ticket: str
    def __init__(self, holder: _Optional[str] = ..., lifetime_ns: _Optional[int] = ..., ticket: _Optional[str] = ...) -> None: ...

class QueueRequest(_message.Message):
    __slots__ = ("ticket", "holder", "leave", "keep")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    ticket: str
    holder: str
    leave: bool
    keep: bool
    def __init__(self, ticket: _Optional[str] = ..., holder: _Optional[str] = ..., leave: _Optional[bool] = ..., keep: _Optional[bool] = ...) -> None: ...

class BootRequest(_message.Message):
    __slots__ = ("limit_ns",)
    LIMIT_NS_FIELD_NUMBER: _ClassVar[int]
    limit_ns: int
    def __init__(self, limit_ns: _Optional[int] = ...) -> None: ...

class BootReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueuePlace(_message.Message):
    __slots__ = ("holder", "since_ns")
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    holder: str
    since_ns: int
    def __init__(self, holder: _Optional[str] = ..., since_ns: _Optional[int] = ...) -> None: ...

class QueueReply(_message.Message):
    __slots__ = ("before", "leased_to", "leased_ns", "left_ns", "places")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LEASED_TO_FIELD_NUMBER: _ClassVar[int]
    LEASED_NS_FIELD_NUMBER: _ClassVar[int]
    LEFT_NS_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    before: int
    leased_to: str
    leased_ns: int
    left_ns: int
    places: _containers.RepeatedCompositeFieldContainer[QueuePlace]
    def __init__(self, before: _Optional[int] = ..., leased_to: _Optional[str] = ..., leased_ns: _Optional[int] = ..., left_ns: _Optional[int] = ..., places: _Optional[_Iterable[_Union[QueuePlace, _Mapping]]] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseReply(_message.Message):
    __slots__ = ("restored",)
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    restored: _containers.RepeatedCompositeFieldContainer[Setting]
    def __init__(self, restored: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("token", "holder", "lifetime_ns", "time_ns")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_NS_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    token: str
    holder: str
    lifetime_ns: int
    time_ns: int
    def __init__(self, token: _Optional[str] = ..., holder: _Optional[str] = ..., lifetime_ns: _Optional[int] = ..., time_ns: _Optional[int] = ...) -> None: ...
