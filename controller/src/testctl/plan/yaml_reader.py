# SPDX-License-Identifier: Apache-2.0
"""Parses YAML into nodes with places.

Only a plain subset is taken: mappings, lists and scalars.  Anchors, aliases, tags and
several documents are refused, so nothing in a file can grow or run.  The parser's events
are read one by one, so depth and size are bounded before anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.untrusted import words

from testctl.plan.diagnostics import Place, Problems, show

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")


@dataclass(frozen=True)
class Scalar:
    """One word or number; `plain` if it was written without quotes."""

    place: Place
    text: str
    plain: bool

    @property
    def empty(self) -> bool:
        return self.plain and self.text in ("", "~", "null")

    @property
    def value(self) -> int | bool | str:
        """An integer, true or false if unquoted; otherwise the text."""
        if self.plain and _INTEGER.fullmatch(self.text):
            return int(self.text)
        if self.plain and self.text in ("true", "false"):
            return self.text == "true"
        return self.text


@dataclass(frozen=True)
class Sequence:
    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Mapping:
    """Entries in the order of the file; keys are scalars and unique."""

    place: Place
    entries: tuple[tuple[Scalar, Node], ...]

    def get(self, key: str) -> Node | None:
        return next((node for name, node in self.entries if name.text == key), None)


Node = Scalar | Sequence | Mapping


def what(node: Node | None) -> str:
    """A node as shown in errors."""
    if node is None or (isinstance(node, Scalar) and node.empty):
        return "nothing"
    if isinstance(node, Scalar):
        return show(node.text)
    if isinstance(node, Sequence):
        return "a list" if node.items else "an empty list"
    return "a mapping" if node.entries else "an empty mapping"


def parse(data: bytes | str, name: str) -> Node:
    """The one document in `data`; `name` is the file that errors show.

    Raises PlanError with its place for anything that is not a small plain document.
    """
    if len(data) > MAX_BYTES:
        raise PlanError(f"{name}: want at most {MAX_BYTES} bytes; got more")
    text = data if isinstance(data, str) else _utf8(data, name)
    zero = text.find("\0")
    if zero >= 0:
        raise PlanError(f"{_at(text, zero, name)}: want text; got a NUL character")
    try:
        return _build(iter(yaml.parse(text, Loader=yaml.SafeLoader)), name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(name, mark.line + 1, mark.column + 1) if mark else Place(name)
        context = f" {error.context}" if error.context else ""
        if mark and "'\\t'" in (error.problem or ""):
            raise PlanError(f"{place}: not YAML: got a tab; want spaces to indent") from error
        raise PlanError(f"{place}: not YAML: {error.problem or 'unreadable'}{context}") from error
    except yaml.reader.ReaderError as error:
        raise PlanError(f"{_at(text, error.position, name)}: not YAML: a character that can't be printed") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise PlanError(f"{name}: not YAML: {error}") from error


def _utf8(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        raise PlanError(
            f"{_at(before, len(before), name)}: want UTF-8; got byte 0x{error.object[error.start]:02x}"
        ) from error


def _at(text: str, position: int, name: str) -> Place:
    before = text[:position]
    return Place(name, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


class _Open:
    """A list or mapping that is still being read."""

    def __init__(self, place: Place, mapping: bool) -> None:
        self.place = place
        self.mapping = mapping
        self.nodes: list[Node] = []

    def close(self, problems: Problems) -> Node:
        if not self.mapping:
            return Sequence(self.place, tuple(self.nodes))
        entries: list[tuple[Scalar, Node]] = []
        seen: dict[str, Place] = {}
        for key, value in zip(self.nodes[::2], self.nodes[1::2], strict=True):
            if not isinstance(key, Scalar):
                problems.add(key.place, f"want a word as key; got {what(key)}")
            elif key.text in seen:
                problems.add(key.place, f"{show(key.text)}: given twice, first at {seen[key.text]}")
            else:
                seen[key.text] = key.place
                entries.append((key, value))
        return Mapping(self.place, tuple(entries))


def _build(events: Iterator[yaml.Event], name: str) -> Node:
    problems = Problems()
    stack: list[_Open] = []
    root: Node | None = None
    for event in events:
        mark = event.start_mark
        place = Place(name, mark.line + 1, mark.column + 1) if mark else Place(name)
        node: Node | None = None
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise PlanError(f"{place}: anchors and aliases (& and *) are not taken; write the value out")
        if getattr(event, "tag", None):
            raise PlanError(f"{place}: tags (!) are not taken; got {show(str(getattr(event, 'tag', '')))}")
        if root is not None and isinstance(event, yaml.DocumentStartEvent):
            raise PlanError(f"{place}: want one document; got another")
        if isinstance(event, yaml.ScalarEvent):
            node = Scalar(place, event.value, event.style is None)
            if words(event.value) != event.value:
                problems.add(place, f"want text that can be shown, without control characters; got {show(event.value)}")
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(stack) >= MAX_DEPTH:
                raise PlanError(f"{place}: want at most {MAX_DEPTH} levels of nesting")
            stack.append(_Open(place, isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            node = stack.pop().close(problems)
        if node is not None and stack:
            stack[-1].nodes.append(node)
        elif node is not None:
            root = node
    problems.check()
    if root is None:
        raise PlanError(f"{name}: want a document; got an empty file")
    return root
