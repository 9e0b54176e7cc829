# SPDX-License-Identifier: Apache-2.0
"""Messages (messages.py) as protobuf's, which gRPC carries, and back."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message as ProtobufMessage

from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.types import Value
from testctl_agent.wire import messages
from testctl_agent.wire.messages import Message

_VALUE = pb.Value.DESCRIPTOR


def to_wire(value: Value) -> pb.Value:
    """A parsed value as a message."""
    if isinstance(value, bool):
        return pb.Value(flag=value)
    if isinstance(value, int):
        return pb.Value(integer=int(value))
    if isinstance(value, float):
        return pb.Value(number=value)
    return pb.Value(text=value)


def from_wire(message: pb.Value) -> Value:
    """The value in a message; an empty message is the empty text."""
    kind = message.WhichOneof("of")
    return "" if kind is None else getattr(message, kind)


def to_protobuf(message: Message) -> Any:
    """Raises ValueError or TypeError for what the wire can't carry, such as an integer of more than 64 bits."""
    made = getattr(pb, type(message).__name__)()
    for field in made.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            target = getattr(made, field.name)
            for key, item in value.items():
                if _of_values(field):
                    target[key].CopyFrom(to_wire(item))
                else:
                    target[key] = item
        elif _is_list(type(message), field):
            getattr(made, field.name).extend(to_protobuf(item) if field.message_type else item for item in value)
        elif field.message_type is not _VALUE:
            setattr(made, field.name, value)
        elif value is not None:
            getattr(made, field.name).CopyFrom(to_wire(value))
    return made


def from_protobuf(made: ProtobufMessage) -> Any:
    """The message of the same name."""
    kind = getattr(messages, made.DESCRIPTOR.name)
    values: dict[str, Any] = {}
    for field in made.DESCRIPTOR.fields:
        value = getattr(made, field.name)
        if _is_map(field):
            values[field.name] = {key: from_wire(value[key]) if _of_values(field) else value[key] for key in value}
        elif _is_list(kind, field):
            values[field.name] = tuple(from_protobuf(item) if field.message_type else item for item in value)
        elif field.message_type is not _VALUE:
            values[field.name] = value
        elif made.HasField(field.name):
            values[field.name] = from_wire(value)
    return kind(**values)


def _is_map(field: Any) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def _is_list(kind: type[Message], field: Any) -> bool:
    return bool(getattr(kind, field.name) == ())


def _of_values(field: Any) -> bool:
    return bool(field.message_type.fields_by_name["value"].message_type is _VALUE)
