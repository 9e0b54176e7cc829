# SPDX-License-Identifier: Apache-2.0
"""P4 expressions as C, with BMv2's meaning: whole numbers without bounds, cut where the program cuts them.

For every expression the least and the greatest value it can have are known, so the C type is chosen
that holds them (64 bits, or 128).  Where only the lowest k bits of a value are wanted (an
assignment to a field of k bits, `x & mask`) sums, differences, products and left shifts are done in
64 bits whatever their bounds, because they do not depend on higher bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from p4c_ebpf import fields
from p4c_ebpf.comparison import same
from p4c_ebpf.document import Node, unwrap
from p4c_ebpf.fields import constant, ones
from p4c_ebpf.interval import EVERYTHING, Interval, signed, unsigned
from p4c_ebpf.model import WIDEST, Field, Header, Param, Program, Stack
from p4c_ebpf.value import Value, c_type, cast_to, signed_value

_COMPARE = {"==", "!=", "<", "<=", ">", ">="}
_BOOL = _COMPARE | {"and", "or", "not", "valid", "valid_union", "d2b"}
_CUTTABLE = {"+", "-", "*", "<<", "&", "|", "^", "~"}
_ARITHMETIC: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod,
    "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "?": Interval.hull,
}  # fmt: skip
_CASTS = {"usat_cast": unsigned, "sat_cast": signed, "two_comp_mod": signed}
_ZERO = Interval(0, 0)


@dataclass
class Scope:
    """What names mean where an expression stands.

    params  action parameters, in order, and `row`, the C pointer to the table row that holds them
    nexts   in the parser: how many headers of each stack have been extracted
    """

    program: Program
    params: tuple[Param, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    nexts: Mapping[str, int] | None = None

    # leaves

    def place(self, node: Node) -> tuple[Field, Header] | None:
        """The field that a leaf names, if it names one that is known before the packet comes."""
        kind = node.kind()
        if kind == "field":
            found = self.program.field(node["value"])
            if found.variable:
                node.cannot(f"the value of {found.header}.{found.name}, which has variable length")
            return found, self.program.headers[found.header]
        if kind == "stack_field":
            stack_node, name = node["value"].pair()
            stack = self.program.stack(stack_node)
            if self.nexts is None:
                node.cannot("the last header of a stack, outside the parser")
            at = self.nexts[stack.name] - 1
            return self._field(stack.headers[max(at, 0)], name)
        if kind == "union_stack_field" and self.nexts is not None and len(node["value"].items()) == 3:
            stack_node, member, name = node["value"].items()
            unions = self.program.union_stack(stack_node)
            at = self.nexts[stack_node.text()] - 1
            return self._field(self.program.member(unions[max(at, 0)], member), name)
        return None

    def _field(self, header: Header, name: Node) -> tuple[Field, Header]:
        found = header.fields.get(name.text())
        if found is None:
            name.fail(f"header {header.name} has no field {name.text()!r}")
        if found.variable or found.width > WIDEST:
            name.cannot(f"the value of {header.name}.{found.name}, which has up to {found.width} bits")
        return found, header

    def leaf(self, node: Node) -> Value:
        kind = node.kind()
        if kind == "hexstr":
            number = node["value"].hexadecimal()
            if c_type(number, number) is None:
                node.cannot("a constant of more than 128 bits")
            return Value(constant(number), number, number)
        if kind in ("local", "runtime_data"):
            at = node["value"].number(0, 255)
            if at >= len(self.params):
                node.fail(f"no action parameter {at}")
            param = self.params[at]
            return Value(self.data[param.name], 0, (1 << param.width) - 1)
        if kind == "field" and node["value"].pair()[1].value == "$valid$":
            owner = node["value"].pair()[0]
            chosen = isinstance(owner.value, dict)
            return Value(self.chosen_valid(owner) if chosen else self.program.header(owner).validity, 0, 1)
        found = self.place(node)
        if found is None:
            node.cannot(f"a value of type {kind}")
        return self.read(*found)

    def read(self, one: Field, header: Header) -> Value:
        text = fields.load(one, header)
        if not one.signed:
            return Value(text, 0, (1 << one.width) - 1)
        return signed_value(text, one.width)

    def chosen(self, node: Node) -> tuple[Stack, str]:
        """A stack, and C of the index of its header that the packet chooses."""
        owner = unwrap(node)
        if not owner.has("op") or owner["op"].text() != "dereference_header_stack":
            node.cannot("this as a header at an index that the packet decides")
        return self.program.stack(owner["left"]["value"]), self.low(owner["right"], 32)

    def chosen_valid(self, node: Node) -> str:
        """C that is 1 if such a header is valid, else 0."""
        stack, index = self.chosen(node)
        test = f"at < {len(stack.headers)} ? (p->valid >> ({stack.headers[0].bit} + at)) & 1 : 0"
        return f"({{ u64 at = {index}; {test}; }})"

    def element(self, node: Node) -> tuple[Stack, Field, str, str]:
        """A field of a stack's header at an index that the packet decides.

        (the stack, the field, C of the index, C of where the header begins in `head` if the index is `at`)
        """
        stack, index = self.chosen(node["left"])
        first = stack.headers[0]
        at = node["right"].number(0, 4096)
        if at >= len(first.fields):
            node.fail(f"stack {stack.name} has no field {at}")
        found = list(first.fields.values())[at]
        if found.variable or found.width > WIDEST:
            node.cannot(f"{stack.name}[…].{found.name}, which has up to {found.width} bits")
        return stack, found, index, f"{first.base} + at * {first.stride}"

    def dynamic(self, node: Node) -> Value:
        """The value of such a field."""
        stack, one, index, base = self.element(node)
        text = fields.load_bits(base, one.offset, one.width)
        kind = "u128" if one.width > 64 else "u64"
        text = (
            f"({{ u64 at = {index}; {kind} e_ = 0; opaque(at); "
            f"if (at < {len(stack.headers)}) {{ opaque(at); e_ = {text}; }} e_; }})"
        )
        return signed_value(text, one.width) if one.signed else Value(text, 0, (1 << one.width) - 1)

    # numbers

    def number(self, node: Node) -> Value:
        """The exact value; ProgramError if no C type holds it."""
        node = unwrap(node)
        if not node.has("op"):
            return self.leaf(node)
        op = node["op"].text()
        if op == "?":
            return self._choice(node)
        if op == "b2d":
            return Value(f"(u64){self.truth(node['right'])}", 0, 1)
        if op == "access_field":
            return self.dynamic(node)
        if op in ("last_stack_index", "size_stack"):
            stack = self.program.stack(unwrap(node["right"])["value"])
            if self.nexts is None:
                node.cannot("the size of a stack, outside the parser")
            count = self.nexts[stack.name] - (op == "last_stack_index")
            return Value(constant(count), count, count)
        if op == "~":
            inner = self.number(node["right"])
            return self._typed(node, lambda cast: f"~{cast}{inner.text}", ~inner.range)
        if op in _CASTS:
            return self._cast(node, op)
        if op == "&":
            return self._and(node)
        left = self.number(node["left"]) if node.has("left") else Value("0ULL", 0, 0)
        if op in ("<<", ">>"):
            return self._shift(node, op, left)
        return self._binary(node, op, left, self.number(node["right"]))

    def _typed(self, node: Node, text: Callable[[str], str], found: Interval) -> Value:
        """`text` is given the cast to the result's type, which belongs before its operands."""
        kind = c_type(found.low, found.high)
        if kind is None:
            node.cannot("a result of more than 128 bits")
        return Value(f"({text(f'({kind})')})", found.low, found.high)

    def _binary(self, node: Node, op: str, a: Value, b: Value) -> Value:
        if op in _BOOL:
            return Value(f"(u64){self.truth(node)}", 0, 1)
        if op not in _ARITHMETIC:
            node.cannot(f"the operation {op!r}")
        if op in ("/", "%") and (min(a.low, b.low) < 0 or max(a.high, b.high) >= 1 << 64):
            node.cannot("division of signed numbers or of more than 64 bits")
        found = _ARITHMETIC[op](a.range, b.range)
        if op in ("/", "%"):
            return Value(f"({a.text} {op} {b.text})", found.low, found.high)
        if op == "*" and c_type(found.low, found.high) not in ("u64", "s64"):
            node.cannot("a product of more than 64 bits")
        return self._typed(node, lambda cast: f"{cast}{a.text} {op} {cast}{b.text}", found)

    def _and(self, node: Node) -> Value:
        a, b = self.bounds(node["left"]), self.bounds(node["right"])
        for mine, other, side in ((a, b, "right"), (b, a, "left")):
            if mine.low >= 0 and (other.low < 0 or other.high > mine.high):
                bits = max(mine.high.bit_length(), 1)
                kind = "u64" if bits <= 64 else "u128"
                if c_type(0, mine.high) is None:
                    break
                own = self.number(node["left" if side == "right" else "right"])
                return Value(f"({cast_to(own, kind)} & {self.cut(node[side], bits)[0]})", 0, mine.high)
        left, right = self.number(node["left"]), self.number(node["right"])
        return self._typed(node, lambda cast: f"{cast}{left.text} & {cast}{right.text}", left.range & right.range)

    def _shift(self, node: Node, op: str, a: Value) -> Value:
        by = self.number(node["right"])
        if by.low < 0:
            node.cannot("a shift by a number that may be negative")
        found = _ARITHMETIC[op](a.range, by.range)
        if by.low == by.high:
            n = by.low
            if op == "<<":
                if n > 256:
                    node.cannot(f"a shift by {n}")
                return Value("0ULL", 0, 0) if a.range == _ZERO else self._left(node, a, str(n), found)
            width = 64 if c_type(a.low, a.high) in ("u64", "s64") else 128
            if n >= width:
                return Value("0ULL", 0, 0) if a.low >= 0 else Value(f"({a.text} < 0 ? -1LL : 0LL)", -1, 0)
            # of the operand's type, which may be wider than the bounds need
            return Value(f"({c_type(found.low, found.high)})({a.text} >> {n})", found.low, found.high)
        if c_type(a.low, a.high) not in ("u64", "s64"):
            node.cannot("a shift of more than 64 bits by a number that is not constant")
        if op == "<<":
            if by.high > 64 or c_type(found.low, found.high) not in ("u64", "s64"):
                node.cannot("a left shift whose result is not cut to at most 64 bits")
            return self._left(node, a, by.text, found)
        over = "0ULL" if a.low >= 0 else f"({a.text} < 0 ? -1LL : 0LL)"
        text = f"{a.text} >> {by.text}"
        if by.high > 63:
            text = f"({by.text} < 64 ? {a.text} >> ({by.text} & 63) : {over})"
        return Value(f"({text})", found.low, found.high)

    def _left(self, node: Node, a: Value, by: str, found: Interval) -> Value:
        """A left shift; of a negative number C defines it only by way of the unsigned type."""
        if found.low >= 0:
            return self._typed(node, lambda cast: f"{cast}{a.text} << {by}", found)
        return self._typed(node, lambda cast: f"{cast}({cast.replace('s', 'u')}{a.text} << {by})", found)

    def _cast(self, node: Node, op: str) -> Value:
        width = self.number(node["right"])
        bits = width.low
        if width.low != width.high or not 1 <= bits <= 128:
            node.cannot("a cast to a width that is not a constant from 1 to 128")
        if op == "two_comp_mod":
            if self.bounds(node["left"]) in signed(bits):
                return self.number(node["left"])
            return signed_value(self.cut(node["left"], bits)[0], bits)
        a = self.number(node["left"])
        to = _CASTS[op](bits)
        found = a.range.clamped(to)
        kind, result = c_type(a.low, a.high), c_type(found.low, found.high)
        text = f"({result})v"
        if a.high > to.high:
            text = f"v > ({kind}){constant(to.high)} ? ({result}){constant(to.high)} : {text}"
        if a.low < to.low:
            text = f"v < ({kind}){constant(to.low)} ? ({result}){constant(to.low)} : {text}"
        return Value(f"({{ {kind} v = {a.text}; {text}; }})", found.low, found.high)

    def _choice(self, node: Node) -> Value:
        a, b = self.number(node["left"]), self.number(node["right"])
        cond = self.truth(node["cond"])
        return self._typed(node, lambda cast: f"{cond} ? {cast}{a.text} : {cast}{b.text}", a.range.hull(b.range))

    def bounds(self, node: Node) -> Interval:
        """Those of an expression's value, without any C of it; EVERYTHING: not known."""
        node = unwrap(node)
        op = node["op"].text() if node.has("op") else ""
        if op in _CASTS:
            bits = self.bounds(node["right"]).low
            if not 1 <= bits <= 128:
                return EVERYTHING
            left = self.bounds(node["left"])
            return left.wrapped(bits) if op == "two_comp_mod" else left.clamped(_CASTS[op](bits))
        if op in _ARITHMETIC:
            left = self.bounds(node["left"]) if node.has("left") else _ZERO
            return _ARITHMETIC[op](left, self.bounds(node["right"])).followed()
        if op == "~":
            return (~self.bounds(node["right"])).followed()
        return Interval(0, 1) if self.is_truth(node) or op == "b2d" else self.number(node).range

    # the lowest bits

    def low(self, node: Node, bits: int) -> str:
        """C of the value modulo 2^bits, a u64 (or u128 above 64 bits)."""
        text, clean = self.cut(node, bits)
        return text if clean else f"({text} & {ones(bits)})"

    def cut(self, node: Node, bits: int) -> tuple[str, bool]:
        """C whose lowest `bits` bits are the value's; and: there are no others."""
        node = unwrap(node)
        kind, size = ("u64", 64) if bits <= 64 else ("u128", 128)
        known = self.bounds(node)
        fits = c_type(known.low, known.high) in ("u64", "s64")
        if fits or not node.has("op") or node["op"].value not in _CUTTABLE | {"?"}:
            value = self.number(node)
            return f"({kind}){value.text}", value.low >= 0 and value.high < 1 << bits
        op = node["op"].text()
        if op == "~":
            return f"(~{self.cut(node['right'], bits)[0]})", False
        if op == "?":
            a, b = self.cut(node["left"], bits), self.cut(node["right"], bits)
            return f"({self.truth(node['cond'])} ? {a[0]} : {b[0]})", a[1] and b[1]
        if op == "&" and self._mask(node) is not None:
            value = self._and(node)
            return f"({kind}){value.text}", value.high < 1 << bits
        left = self.cut(node["left"], bits)[0] if node.has("left") else f"({kind})0"
        if op == "<<":
            by = self.number(node["right"])
            if by.low < 0:
                node.cannot("a shift by a number that may be negative")
            if by.low == by.high:
                return (f"({left} << {by.low})", False) if by.low < size else (f"({kind})0", True)
            if size > 64:
                node.cannot("a shift of more than 64 bits by a number that is not constant")
            return f"({by.text} < 64 ? {left} << ({by.text} & 63) : 0)", False
        if op == "*" and size > 64:
            node.cannot("a product of more than 64 bits")
        return f"({left} {op} {self.cut(node['right'], bits)[0]})", False

    def _mask(self, node: Node) -> int | None:
        for side in ("left", "right"):
            known = self.bounds(node[side])
            if known.low >= 0 and c_type(known.low, known.high):
                return known.high
        return None

    # truth

    def is_truth(self, node: Node) -> bool:
        node = unwrap(node)
        if node.has("op"):
            op = node["op"].text()
            return op in _BOOL or (op == "?" and self.is_truth(node["left"]))
        return node.kind() == "bool"

    def truth(self, node: Node) -> str:
        """C that is 0 or 1."""
        node = unwrap(node)
        if not node.has("op"):
            if node.kind() == "bool":
                return "1" if node["value"].flag() else "0"
            return f"({self.number(node).text} != 0)"
        op = node["op"].text()
        if op in ("and", "or"):
            return f"({self.truth(node['left'])} {'&&' if op == 'and' else '||'} {self.truth(node['right'])})"
        if op == "not":
            return f"(!{self.truth(node['right'])})"
        if op == "d2b":
            return f"({self.number(node['right']).text} != 0)"
        if op == "valid" and unwrap(node["right"]).has("op"):
            return f"({self.chosen_valid(node['right'])} != 0)"
        if op == "valid_union":
            return f"((p->valid & {self.program.union(unwrap(node['right'])['value']).mask}) != 0)"
        if op == "valid":
            return f"({self.program.header(unwrap(node['right'])['value']).validity} != 0)"
        if op == "?":
            return f"({self.truth(node['cond'])} ? {self.truth(node['left'])} : {self.truth(node['right'])})"
        if op not in _COMPARE:
            return f"({self.number(node).text} != 0)"
        left, right = unwrap(node["left"]), unwrap(node["right"])
        if text := same(self.program, node, left, right):
            return text if op == "==" else f"(!{text})"
        if self.is_truth(left):
            return f"({self.truth(left)} {op} {self.truth(right)})"
        a, b = self.number(left), self.number(right)
        kind = c_type(min(a.low, b.low), max(a.high, b.high))
        if kind is None:
            node.cannot("comparing numbers of more than 128 bits")
        return f"({cast_to(a, kind)} {op} {cast_to(b, kind)})"
