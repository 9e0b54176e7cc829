# SPDX-License-Identifier: Apache-2.0
"""C of the kernel as a syntax tree, with the same bytes at the same places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from testctl_agent.spec.errors import TestbedError

try:
    import tree_sitter_c
    from tree_sitter import Language, Node, Parser
except ImportError as error:
    raise TestbedError(
        f"testctl mutate: want tree-sitter and tree-sitter-c; {error}; install them with: pip install 'testctl[mutate]'"
    ) from error

_ATTRIBUTES = re.compile(
    rb"\b(?:__(?:always_inline|bpf_kfunc|bpf_kfunc_start_defs|bpf_kfunc_end_defs|cold|force|init|initdata|must_check|"
    rb"net_exit|net_init|net_initdata|percpu|read_mostly|ro_after_init|rcu|sched|user)|noinline|"
    rb"INDIRECT_CALLABLE_SCOPE|fallthrough;)"
)
"""Words that the kernel's macros remove or replace by attributes, and that are no C without them."""

_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(\w*)(?:\\\r?\n|[^\n])*", re.MULTILINE)


def blanked(text: bytes) -> bytes:
    """The text with spaces in place of directives, of all but the first branch of each #if, and of attributes."""
    result = bytearray(text)
    depth, skipped, since = 0, 0, 0  # of #if; the depth whose other branches are skipped, and where they begin
    for directive in _DIRECTIVE.finditer(text):
        word = directive[1]
        if word.startswith(b"if"):
            depth += 1
        elif word.startswith(b"el") and not skipped:
            skipped, since = depth, directive.start()
        elif word == b"endif":
            if skipped == depth:
                _blank(result, since, directive.start())
                skipped = 0
            depth -= 1
        _blank(result, directive.start(), directive.end())
    for attribute in _ATTRIBUTES.finditer(text):
        _blank(result, *attribute.span())
    return bytes(result)


def _blank(text: bytearray, start: int, end: int) -> None:
    text[start:end] = re.sub(rb"[^\n]", b" ", bytes(text[start:end]))


@dataclass(frozen=True)
class Source:
    """A file of a tree.  name: its path there."""

    name: str
    text: bytes

    @cached_property
    def blanked(self) -> bytes:
        """The text as the parser has it."""
        return blanked(self.text)

    @cached_property
    def root(self) -> Node:
        return Parser(Language(tree_sitter_c.language())).parse(self.blanked).root_node

    def functions(self) -> Iterator[tuple[str, Node]]:
        """Each function's name and node.  A macro's loop within one looks like another one, but is a part of it."""
        end = 0
        for node in walk(self.root):
            if node.type == "function_definition" and node.start_byte >= end:
                declarator = node.child_by_field_name("declarator")
                name = next((n for n in walk(declarator) if n.type == "identifier"), None) if declarator else None
                if name is not None:
                    end = node.end_byte
                    yield text_of(name), node

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end].decode(errors="replace")


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, without what the parser could not read."""
    if node.is_error:
        return
    yield node
    for child in node.children:
        yield from walk(child)


def text_of(node: Node | None) -> str:
    return node.text.decode(errors="replace") if node is not None and node.text is not None else ""
