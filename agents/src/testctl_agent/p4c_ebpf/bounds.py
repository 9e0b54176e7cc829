# SPDX-License-Identifier: Apache-2.0
"""The least and the greatest value that an expression can have, without writing any C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testctl_agent.p4c_ebpf.document import Node, unwrap

if TYPE_CHECKING:
    from testctl_agent.p4c_ebpf.expression import Scope

_FARTHEST = 1 << 300
"""Bounds beyond this are not followed any more."""


def bounds(scope: Scope, node: Node) -> tuple[int, int] | None:
    """None: not known, or too far away to matter."""
    node = unwrap(node)
    if not node.has("op"):
        value = scope.leaf(node)
        return value.low, value.high
    op = node["op"].text()
    if op == "access_field":
        value = scope.dynamic(node)
        return value.low, value.high
    if op == "~":
        inner = bounds(scope, node["right"])
        return inner and (-inner[1] - 1, -inner[0] - 1)
    if op in ("+", "-", "*", "<<", ">>", "&", "|", "^", "/", "%", "?", "two_comp_mod", "usat_cast", "sat_cast"):
        a = bounds(scope, node["left"]) if node.has("left") else (0, 0)
        b = bounds(scope, node["right"])
        found = _operation(op, a, b)
        return found if found and found[0] > -_FARTHEST and found[1] < _FARTHEST else None
    if scope.is_truth(node) or op == "b2d":
        return 0, 1
    value = scope.number(node)
    return value.low, value.high


def _operation(op: str, a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    if op == "&":
        highs = [one[1] for one in (a, b) if one is not None and one[0] >= 0]
        return (0, min(highs)) if highs else None
    if b is None:
        return None
    if op in ("two_comp_mod", "usat_cast", "sat_cast"):
        if not 1 <= b[0] <= 128:
            return None
        low, high = (0, (1 << b[0]) - 1) if op == "usat_cast" else (-(1 << (b[0] - 1)), (1 << (b[0] - 1)) - 1)
        if a is None or (op == "two_comp_mod" and (a[0] < low or a[1] > high)):
            return low, high
        return min(max(low, a[0]), high), max(min(high, a[1]), low)
    if a is None:
        return None
    if op == "?":
        return min(a[0], b[0]), max(a[1], b[1])
    if op in ("|", "^"):
        bits = max(v.bit_length() for v in (*a, *b))
        return (-(1 << bits) if min(a[0], b[0]) < 0 else 0), (1 << bits) - 1
    if op == "+":
        return a[0] + b[0], a[1] + b[1]
    if op == "-":
        return a[0] - b[1], a[1] - b[0]
    if op == "*":
        ends = [x * y for x in a for y in b]
        return min(ends), max(ends)
    if op in ("/", "%"):
        return (0, a[1]) if a[0] >= 0 and b[0] >= 0 else None
    if b[0] < 0 or (op == "<<" and b[1] > 256):
        return None
    ends = [x << n if op == "<<" else x >> min(n, 512) for x in a for n in b]
    return min(ends), max(ends)
