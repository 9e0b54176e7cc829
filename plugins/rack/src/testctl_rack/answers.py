# SPDX-License-Identifier: Apache-2.0
"""The shape of every answer of an agent, checked once, where it comes in (grpc_agents.py).

A text is a name, printable and short, unless it is one of FREE, in which terminal controls are replaced.  An answer of
another shape is a call that failed, with the field that is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.message import Message
from testctl_agent.daemon.boot_notes import BOOT, WAS
from testctl_agent.spec.untrusted import words

from testctl_rack import boot_once

NAME_CHARS = 256
FREE = frozenset({
    "Value.text", "Capability.missing", "Description.notes", "Attestation.facts", "TaskStatus.error",
    "TaskStatus.result",
})  # fmt: skip
"""Texts of any length and with line ends; of a map, its values."""
PATTERNS = {
    "Description.kernel": boot_once.RELEASE,
    f"Description.notes[{WAS}]": boot_once.RELEASE,
    f"Description.notes[{BOOT}]": re.compile("[0-9a-f-]{36}"),
    "Lease.token": re.compile("[0-9a-f]{1,128}"),
}
_FACT = re.compile(r"(?!link )\S.*|link \S+ \S.*")
"""A fact of a device is of one: "link eth0 mtu"."""


class OddAnswer(grpc.RpcError):  # type: ignore[misc]  # grpc has no types
    """An answer that no agent of the project gives."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.DATA_LOSS

    def details(self) -> str:
        return str(self.args[0])


def checked(answer: Any) -> Any:
    """The answer, with FREE texts cleaned in place.  Raises OddAnswer."""
    if why := next(_misfits(answer), ""):
        raise OddAnswer(f"an answer that no agent gives: {why}")
    return answer


def _misfits(answer: Message) -> Iterator[str]:
    for field, value in answer.ListFields():
        name = f"{answer.DESCRIPTOR.name}.{field.name}"
        if field.message_type and field.message_type.GetOptions().map_entry:
            yield from _of_map(name, value)
        elif field.message_type:
            for message in value if hasattr(value, "append") else [value]:
                yield from _misfits(message)
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{name}: want a finite number; got {value}"
        elif isinstance(value, str) and name in FREE:
            setattr(answer, field.name, words(value))
        else:
            for text in [value] if isinstance(value, str) else value if hasattr(value, "append") else []:
                yield from _of_name(name, text)


def _of_map(name: str, values: Any) -> Iterator[str]:
    """Of a map from names to FREE texts; no answer has another one."""
    for key, text in list(values.items()):
        yield from _of_name(f"{name}, a name", key)
        if name == "Attestation.facts" and not _FACT.fullmatch(key):
            yield f"{name}: want a fact, such as 'link eth0 mtu'; got {key!r}"
        if f"{name}[{key}]" in PATTERNS:
            yield from _of_name(f"{name}[{key}]", text)
        values[key] = words(text)


def _of_name(name: str, text: str) -> Iterator[str]:
    pattern = PATTERNS.get(name)
    if pattern and not pattern.fullmatch(text):
        yield f"{name}: want {pattern.pattern}; got {text[:60]!r}"
    elif len(text) > NAME_CHARS or not text.isprintable():
        yield f"{name}: want a name, printable and of at most {NAME_CHARS} characters; got {text[:60]!r}"
