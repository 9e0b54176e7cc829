# SPDX-License-Identifier: Apache-2.0
"""Whether two headers, or two fields of variable length, hold the same; bytes beyond a varbit's length are 0."""

from __future__ import annotations

from collections.abc import Iterable

from p4c_ebpf.document import Node
from p4c_ebpf.model import Header, Program


def same(program: Program, node: Node, left: Node, right: Node) -> str | None:
    """C of left == right; None: they are numbers."""
    if left.has("op") or right.has("op"):
        return None
    if left.kind() == "header":
        if right.kind() != "header":
            node.cannot("comparing a header with this")
        return _headers(node, program.header(left["value"]), program.header(right["value"]))
    a, b = _variable(program, left), _variable(program, right)
    return _varbits(node, a, b) if a and b else None


def _headers(node: Node, a: Header, b: Header) -> str:
    """Both are valid and hold the same; two invalid ones are not equal (as in BMv2)."""
    if (a.bytes, a.extra) != (b.bytes, b.extra) or a.metadata or b.metadata:
        node.cannot("comparing headers of two types")
    lengths = [f"{a.length} == {b.length}"] if a.extra else []
    return f"({' && '.join([a.validity, b.validity, *_words(a, b, a.words), *lengths])})"


def _variable(program: Program, node: Node) -> Header | None:
    """The header whose varbit a leaf names, if it names one."""
    if node.kind() != "field" or node["value"].pair()[1].value == "$valid$":
        return None
    found = program.field(node["value"])
    return program.headers[found.header] if found.variable else None


def _varbits(node: Node, a: Header, b: Header) -> str:
    """The same length and bits (P4-16, section 8.9)."""
    if (a.bytes, a.extra) != (b.bytes, b.extra):
        node.cannot("comparing fields of variable length of two header types")
    whole = (a.bytes + 7) // 8 * 8
    first = [f"p->head[{a.base + at}] == p->head[{b.base + at}]" for at in range(a.bytes, whole)]
    words = _words(a, b, (at for at in a.words if at >= whole))
    return f"({' && '.join([f'{a.length} == {b.length}', *first, *words])})"


def _words(a: Header, b: Header, at: Iterable[int]) -> list[str]:
    return [f"head64(p, {a.base + word}) == head64(p, {b.base + word})" for word in at]
