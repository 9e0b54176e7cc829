# SPDX-License-Identifier: Apache-2.0
"""Converts parts of a plan to plain data with places, and plain data to nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from testctl.plan.diagnostics import Place
from testctl.plan.yaml_reader import Mapping, Node, Scalar, Sequence

Path = tuple[int | str, ...]


@dataclass(frozen=True)
class Plain:
    """Data with the place of each part, by its path of keys and indexes."""

    data: Any = None
    places: dict[Path, Place] = field(default_factory=dict)

    def place(self, path: Path) -> str:
        """The place of a part; of a missing part the place of the enclosing one."""
        while path and path not in self.places:
            path = path[:-1]
        return str(self.places[path]) if path in self.places else "figures"


def plain(node: Node | None) -> Plain:
    """The node as lists, dicts and scalars."""
    places: dict[Path, Place] = {}
    return Plain(_read(node, (), places) if node is not None else None, places)


def _read(node: Node, path: Path, places: dict[Path, Place]) -> Any:
    places[path] = node.place
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Mapping):
        return {key.text: _read(value, (*path, key.text), places) for key, value in node.entries}
    return [_read(item, (*path, index), places) for index, item in enumerate(node.items)]


def node_of(data: Any, place: Place) -> Node:
    """Lists, dicts and scalars as nodes at one place; the inverse of `plain`."""
    if isinstance(data, dict):
        entries = [(Scalar(place, str(key), True), node_of(value, place)) for key, value in data.items()]
        return Mapping(place, tuple(entries))
    if isinstance(data, list | tuple):
        return Sequence(place, tuple(node_of(item, place) for item in data))
    if isinstance(data, bool | int) or data is None:
        return Scalar(place, "" if data is None else str(data).lower(), True)
    bare = Scalar(place, str(data), True)
    return bare if bare.value == bare.text and not bare.empty else Scalar(place, bare.text, False)
