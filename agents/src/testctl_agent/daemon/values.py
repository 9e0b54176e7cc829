# SPDX-License-Identifier: Apache-2.0
"""Values and settings as messages, and back."""

from __future__ import annotations

from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.types import Value


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
