# SPDX-License-Identifier: Apache-2.0
"""Reads the fields of a mapping: known and needed names, numbers and words."""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from typing import Any

from testctl.plan.diagnostics import Problems, show, suggest
from testctl.plan.yaml_reader import Mapping, Node, Scalar, Sequence, what

NAME = re.compile(r"[a-z][a-z0-9_]*")
LONGEST_NAME = 15  # a Linux device name; ports are called like their neighbour


Json = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A field of a mapping in a plan.

    help    what an editor shows of it
    schema  the JSON Schema of its value; {}: plan/schema.py makes it from the specs
    needed  whether the mapping has to have it
    """

    help: str
    schema: Json = field(default_factory=dict)
    needed: bool = False


Table = MappingOf[str, Field]


class Fields:
    """The entries of a mapping, by its table or by their names; faults go to `problems`, under the name `who`."""

    def __init__(
        self,
        node: Node | None,
        who: str,
        known: Table | Collection[str],
        problems: Problems,
        needed: Collection[str] | None = None,
    ) -> None:
        self.table = known if isinstance(known, MappingOf) else {}
        if needed is None:
            needed = [name for name, field in self.table.items() if field.needed]
        self.problems = problems
        self.who = f"{who}: " if who else ""
        self.node = node
        self.nodes: dict[str, Node] = {}
        self.ok = isinstance(node, Mapping)
        if not isinstance(node, Mapping):
            if node is not None:
                problems.add(node.place, f"{self.who}want a mapping of {', '.join(known)}; got {what(node)}")
            return
        for key, value in node.entries:
            if key.text in known:
                self.nodes[key.text] = value
            else:
                hint = suggest(key.text, known) or f"; want one of {', '.join(known)}"
                problems.add(key.place, f"{self.who}no field named {show(key.text)}{hint}")
        for name in needed:
            if name not in self.nodes:
                self.ok = False
                problems.add(node.place, f"{self.who}want a field {name}; got none")

    def refuse(self, node: Node, name: str, want: str) -> None:
        self.problems.add(node.place, f"{self.who}{name}: want {want}; got {what(node)}")

    def integer(self, name: str, default: int, least: int | None = None, most: int | None = None) -> int:
        """A whole number; its limits are the table's where none are given."""
        node = self.nodes.get(name)
        if node is None:
            return default
        least = self.table[name].schema["minimum"] if least is None else least
        most = self.table[name].schema["maximum"] if most is None else most
        return integer(node, f"{self.who}{name}", least, most, self.problems, default)

    def text(self, name: str, default: str = "") -> str:
        """One line of free text."""
        node = self.nodes.get(name)
        if node is None:
            return default
        if not isinstance(node, Scalar) or node.empty:
            self.refuse(node, name, "text")
            return default
        return node.text

    def choice(self, name: str, default: str, choices: Collection[str] = ()) -> str:
        """One of `choices`, or of those of the table."""
        node = self.nodes.get(name)
        choices = choices or self.table[name].schema["enum"]
        if node is None:
            return default
        if not isinstance(node, Scalar) or node.text not in choices:
            self.refuse(node, name, f"one of {', '.join(choices)}")
            return default
        return node.text


def integer(node: Node, who: str, least: int, most: int, problems: Problems, default: int) -> int:
    """A whole number in [least, most], or a problem and the default."""
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        problems.add(node.place, f"{who}: want a whole number from {least} to {most}; got {what(node)}")
        return default
    return value


def name_of(node: Node, what_it_is: str, problems: Problems, longest: int = LONGEST_NAME) -> str | None:
    """A name such as h3, or a problem and None."""
    text = node.text if isinstance(node, Scalar) else ""
    if not NAME.fullmatch(text) or len(text) > longest:
        problems.add(
            node.place,
            f"{what_it_is}: want a name of a-z, 0-9 and _ that begins with a letter, "
            f"at most {longest} characters; got {what(node)}",
        )
        return None
    return text


def words_of(node: Node, who: str, problems: Problems) -> list[Scalar]:
    """The words of a list (or one word by itself)."""
    items = node.items if isinstance(node, Sequence) else (node,)
    arguments = []
    for item in items:
        if isinstance(item, Scalar) and not item.empty:
            arguments.append(item)
        else:
            problems.add(item.place, f"{who}: want a word; got {what(item)}")
    return arguments
