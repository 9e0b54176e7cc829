# SPDX-License-Identifier: Apache-2.0
"""Converts parts of a plan to plain data, and plain data to nodes."""

from __future__ import annotations

from typing import Any

from testctl.plan.diagnostics import Place
from testctl.plan.yaml_reader import Mapping, Node, Scalar, Sequence


def plain(node: Node) -> Any:
    """The node as lists, dicts and scalars."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node.entries}
    return [plain(item) for item in node.items]


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
