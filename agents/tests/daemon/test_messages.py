# SPDX-License-Identifier: Apache-2.0
"""The plain messages are those of agent.proto, and nothing is lost between the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.protobuf import from_protobuf, to_protobuf
from testctl_agent.spec.units import Duration
from testctl_agent.wire import messages
from testctl_agent.wire.messages import Message

NAMES = [name for name in pb.DESCRIPTOR.message_types_by_name if name != "Value"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INTEGER = st.integers(-(2**63), 2**63 - 1)
VALUE = st.one_of(st.booleans(), INTEGER, st.floats(allow_nan=False), TEXT)


def a_message(name: str) -> st.SearchStrategy[Message]:
    """Any message of that name, by the types of its fields in agent.proto."""
    kind = getattr(messages, name)
    fields = {field.name: a_field(kind, field) for field in pb.DESCRIPTOR.message_types_by_name[name].fields}
    return st.builds(kind, **fields)


def a_field(kind: type[Message], field: Any) -> st.SearchStrategy[Any]:
    if field.message_type and field.message_type.GetOptions().map_entry:
        return st.dictionaries(TEXT, a_field(kind, field.message_type.fields_by_name["value"]), max_size=3)
    if field.message_type and field.message_type.name == "Value":
        return VALUE if get_type_hints(kind).get(field.name) != messages.Value | None else st.one_of(st.none(), VALUE)
    if field.message_type:
        return st.lists(a_message(field.message_type.name), max_size=3).map(tuple)
    scalar = {
        field.TYPE_STRING: TEXT, field.TYPE_BOOL: st.booleans(), field.TYPE_BYTES: st.binary(max_size=8),
        field.TYPE_INT64: INTEGER, field.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    }[field.type]  # fmt: skip
    return st.lists(scalar, max_size=3).map(tuple) if getattr(kind, field.name, None) == () else scalar


def test_every_message_of_the_wire_is_there_with_its_fields() -> None:
    own = {cls.__name__: cls.fields for cls in Message.__subclasses__()}
    descriptors = pb.DESCRIPTOR.message_types_by_name
    assert own == {name: tuple(field.name for field in descriptors[name].fields) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_default_is_that_of_the_wire(name: str) -> None:
    kind = getattr(messages, name)
    assert from_protobuf(getattr(pb, name)()) == kind()
    assert from_protobuf(to_protobuf(kind())) == kind()


@given(st.sampled_from(NAMES).flatmap(a_message))
def test_nothing_is_lost_on_the_wire(message: Message) -> None:
    made = getattr(pb, type(message).__name__).FromString(to_protobuf(message).SerializeToString())
    found = from_protobuf(made)
    assert found == message
    assert exact(found) == exact(message)


def exact(value: Any) -> object:
    """As text, in which 1 is not True; a map's order is lost on the wire."""
    if isinstance(value, Message):
        return [exact(getattr(value, name)) for name in value.fields]
    if isinstance(value, Mapping):
        return sorted((key, exact(one)) for key, one in value.items())
    return [exact(one) for one in value] if isinstance(value, tuple) else repr(value)


def test_a_field_that_no_message_has() -> None:
    with pytest.raises(TypeError, match=r"^StopRequest: want task; got \{'tsak'\}$"):
        messages.StopRequest(tsak="bulk")  # type: ignore[call-arg]


def test_a_duration_arrives_as_a_number() -> None:
    found = messages.plain(Duration(5))
    assert (found, type(found)) == (5, int)
    assert messages.plain(True) is True
