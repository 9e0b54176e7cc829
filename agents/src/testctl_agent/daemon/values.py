# SPDX-License-Identifier: Apache-2.0
"""Values and settings as messages, and back."""

from __future__ import annotations

from collections.abc import Mapping

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


def options_to_wire(options: Mapping[str, Value]) -> dict[str, pb.Value]:
    """Options of a generator or a collector as messages."""
    return {name: to_wire(value) for name, value in options.items()}


def options_from_wire(options: Mapping[str, pb.Value]) -> dict[str, Value]:
    """And back."""
    return {name: from_wire(value) for name, value in options.items()}
