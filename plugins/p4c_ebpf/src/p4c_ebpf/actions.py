# SPDX-License-Identifier: Apache-2.0
"""Primitives as C statements: assignments, header validity, registers, counters, hashes, jumps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from p4c_ebpf import fields
from p4c_ebpf.code import Code
from p4c_ebpf.document import Node, unwrap
from p4c_ebpf.expression import Scope
from p4c_ebpf.fields import ones
from p4c_ebpf.hashes import Hashes
from p4c_ebpf.model import RECIRCULATE, RESUBMIT, Action, Array, Field, Header, Meter, Program, Stack, comment

DROP_PORT = 511

_WHY_NOT = {"assign_union": "an assignment of header unions"}
_JUMPS = {"_jump": 1, "_jump_if_zero": 2}
"""How many parameters each has, the last one the statement to go to."""


def _aim(jump: Node) -> int:
    op, given = jump["op"].text(), jump["parameters"].items()
    if len(given) != _JUMPS[op]:
        jump.fail(f"{op}: want {_JUMPS[op]} parameters; got {len(given)}")
    return unwrap(given[-1])["value"].hexadecimal()


@dataclass
class Statements:
    """Writes primitives into `code`; `leave` is the label that `exit` jumps to ("" where there is no pipeline)."""

    program: Program
    code: Code
    hashes: Hashes
    scope: Scope
    leave: str = ""

    def action(self, action: Action) -> None:
        """The body of an action; its jumps go to labels of their own."""
        targets: dict[int, str] = {}
        for at, primitive in enumerate(action.primitives):
            if primitive["op"].text() in _JUMPS:
                aim = _aim(primitive)
                if not at < aim <= len(action.primitives):
                    primitive.cannot("a loop")
                targets.setdefault(aim, self.code.unique("after"))
        for at, primitive in enumerate(action.primitives):
            if at in targets:
                self.code.label(targets[at])
            self.primitive(primitive, targets)
        if len(action.primitives) in targets:
            self.code.label(targets[len(action.primitives)])

    def primitive(self, node: Node, targets: dict[int, str]) -> None:
        op = node["op"].text()
        given = node["parameters"].items()
        if op in _JUMPS:
            aim = _aim(node)
            if aim not in targets:
                node.cannot("a jump, in the parser")
            test = f"if (!{self.scope.truth(given[0])}) " if op == "_jump_if_zero" else ""
            self.code.add(f"{test}goto {targets[aim]};")
            return
        if op in _WHY_NOT:
            node.cannot(_WHY_NOT[op])
        writers: dict[str, tuple[int, Callable[..., None]]] = {
            "assign": (2, self.assign),
            "set": (2, self.assign),
            "modify_field": (2, self.assign),
            "assign_header": (2, self.assign_header),
            "copy_header": (2, self.assign_header),
            "assign_VL": (2, self._assign_variable),
            "assign_header_stack": (2, self._assign_stack),
            "add_header": (1, self._add_header),
            "remove_header": (1, self._remove_header),
            "push": (2, self._push),
            "pop": (2, self._pop),
            "modify_field_with_hash_based_offset": (4, self._hash),
            "modify_field_rng_uniform": (3, self._random),
            "count": (2, self._count),
            "execute_meter": (3, self._execute_meter),
            "clone_ingress_pkt_to_egress": (2, self._clone),
            "clone_egress_pkt_to_egress": (2, self._clone),
            "resubmit": (1, partial(self._again, RESUBMIT)),
            "recirculate": (1, partial(self._again, RECIRCULATE)),
            "truncate": (1, self._truncate),
            "assert": (1, self._assert),
            "assume": (1, self._assert),
            "register_read": (3, self._register_read),
            "register_write": (3, self._register_write),
        }
        if op in writers:
            count, writer = writers[op]
            if len(given) != count:
                node.fail(f"{op}: want {count} parameters; got {len(given)}")
            self.note(node)
            writer(*given)
        elif op in ("mark_to_drop", "drop"):
            self._drop()
        elif op == "exit":
            if not self.leave:
                node.cannot("exit, in the parser")
            self.code.add(f"goto {self.leave};")
        elif op not in ("no_op", "log_msg", "generate_digest"):  # a message to nobody
            node.cannot(f"the primitive {op}")

    def _relayout(self) -> str:
        """The statement that says: headers are not where they were in the packet."""
        self.program.resizes = True
        return "p->relayout = 1;"

    def note(self, node: Node) -> None:
        if node.fragment:
            self.code.add(f"/* {comment(node.where.rpartition('/')[2])}: {comment(node.fragment)} */")

    def std(self, name: str) -> Field:
        return self.program.needed(name)

    # fields

    def assign(self, target: Node, source: Node) -> None:
        inner = unwrap(target)
        if inner.has("op") and inner["op"].value == "access_field":
            self._assign_dynamic(inner, source)
            return
        found = self.scope.place(inner)
        if found is None:
            target.cannot("an assignment to this")
        self.put(*found, *self.scope.cut(source, found[0].width))

    def put(self, field: Field, header: Header, text: str, clean: bool = False) -> None:
        """Set a field; one of a header that isn't valid keeps its zeros."""
        kind = "u64" if field.width <= 64 else "u128"
        if not clean and (field.width not in (8, 16, 32, 64) or not header.metadata):
            text = f"({text} & {ones(field.width)})"
        if header.metadata:
            with self.code.block():
                self.code.add(f"{kind} v = {text};", "", *fields.store(field, header, "v"))
            return
        with self.code.block(f"if (p->valid & {header.mask})"):
            self.code.add(f"{kind} v = {text};", "", *fields.store(field, header, "v"))
            self.code.add(f"p->dirty |= {header.mask};")

    def _assign_dynamic(self, target: Node, source: Node) -> None:
        stack, field, index, base = self.scope.element(target)
        bit = f"({stack.headers[0].bit} + at)"
        kind = "u64" if field.width <= 64 else "u128"
        with self.code.block():
            self.code.add(f"{kind} v = {self.scope.low(source, field.width)};", f"u64 at = {index};", "")
            self.code.add("opaque(at);")
            with self.code.block(f"if (at < {len(stack.headers)} && (p->valid >> {bit}) & 1)"):
                self.code.add("opaque(at);")
                self.code.add(*fields.store_bits(base, field.offset, field.width, "v"))
                self.code.add(f"p->dirty |= 1ULL << {bit};")

    # headers

    def _whole_header(self, node: Node) -> Header:
        inner = unwrap(node)
        if inner.has("op") or inner.kind() != "header":
            node.cannot("a header at an index that the packet decides")
        return self.program.header(inner["value"])

    def assign_header(self, target: Node, source: Node) -> None:
        a, b = self._whole_header(target), self._whole_header(source)
        if a.metadata and b.metadata and list(a.fields) == list(b.fields):
            for name, field in a.fields.items():
                if (a.name, name) in self.program.used:
                    self.put(field, a, self.scope.read(b.fields[name], b).text)
            return
        if a.metadata or b.metadata or (a.bytes, a.extra) != (b.bytes, b.extra):
            target.cannot("copying a header of another type")
        self._copy(a, b)

    def _copy(self, a: Header, b: Header) -> None:
        self.code.add(*(f"head64(p, {a.base + at}) = head64(p, {b.base + at});" for at in a.words))
        if a.extra:
            self.code.add(f"{a.length} = {b.length};")
        self.code.add(f"p->valid = (p->valid & ~{a.mask}) | (u64)is_valid(p, {b.bit}) << {a.bit};")
        if self.program.siblings(a):
            with self.code.block(f"if (p->valid & {a.mask})"):
                self.alone(a)
        self.code.add(f"p->dirty |= {a.mask};", self._relayout())

    def _assign_variable(self, target: Node, source: Node) -> None:
        """A varbit with its length, to a header that is valid."""
        both = [self.program.field(node["value"]) for node in (target, source) if node.kind() == "field"]
        if len(both) != 2 or not all(one.variable for one in both) or both[0].width < both[1].width:
            target.cannot("this assignment of a field of variable length")
        a, b = (self.program.headers[one.header] for one in both)
        with self.code.block(f"if (p->valid & {a.mask})"):
            into, from_ = (f"p->head + {one.base + one.bytes}" for one in (a, b))
            self.code.add(f"__builtin_memset({into}, 0, {a.extra});", f"__builtin_memcpy({into}, {from_}, {b.extra});")
            self.code.add(f"{a.length} = {b.length};", f"p->dirty |= {a.mask};", self._relayout())

    def _assign_stack(self, target: Node, source: Node) -> None:
        a, b = self.program.stack(unwrap(target)["value"]), self.program.stack(unwrap(source)["value"])
        if len(a.headers) != len(b.headers) or (a.headers[0].bytes, a.headers[0].extra) != (
            b.headers[0].bytes,
            b.headers[0].extra,
        ):
            target.cannot("copying a stack of another type")
        for mine, other in zip(a.headers, b.headers, strict=True):
            self._copy(mine, other)

    def _zero(self, header: Header) -> list[str]:
        length = [f"{header.length} = 0;"] if header.extra else []
        return [*(f"head64(p, {header.base + at}) = 0;" for at in header.words), *length]

    def _add_header(self, node: Node) -> None:
        header = self._whole_header(node)
        if header.metadata:
            return
        self.program.resizes = True
        self.code.add(f"p->relayout |= is_valid(p, {header.bit}) ^ 1;", f"p->valid |= {header.mask};")
        self.alone(header)

    def alone(self, header: Header) -> None:
        """It became valid: the other members of its union are not any more (P4-16, section 8.20)."""
        for one in self.program.siblings(header):
            self._remove(one)

    def _remove_header(self, node: Node) -> None:
        header = self._whole_header(node)
        if header.metadata:
            return
        self._remove(header)

    def _remove(self, header: Header) -> None:
        """Without a branch: each would double what the verifier follows."""
        self.program.resizes = True
        self.code.add(f"p->relayout |= is_valid(p, {header.bit});", f"p->valid &= ~{header.mask};", *self._zero(header))

    def _shift(self, node: Node, by: Node) -> tuple[Stack, int]:
        stack = self.program.stack(unwrap(node)["value"])
        count = self.scope.number(by)
        if count.low != count.high or not count.low >= 0:
            by.cannot("push or pop by a number that is not constant")
        return stack, min(count.low, len(stack.headers))

    def _move(self, stack: Stack, pairs: list[tuple[int, int]], emptied: range, shift: str) -> None:
        """Copy headers (to, from), zero the emptied ones, move the bits that say which are valid."""
        code, first = self.code, stack.headers[0]
        for to, source in pairs:
            a, b = stack.headers[to], stack.headers[source]
            code.add(*(f"head64(p, {a.base + at}) = head64(p, {b.base + at});" for at in a.words))
            if a.extra:
                code.add(f"{a.length} = {b.length};")
        for at in emptied:
            code.add(*self._zero(stack.headers[at]))
        every = f"{(1 << len(stack.headers)) - 1:#x}ULL"
        with code.block():
            code.add(f"u64 v = ((p->valid >> {first.bit}) & {every}) {shift};", "")
            code.add(f"p->valid = (p->valid & ~({every} << {first.bit})) | ((v & {every}) << {first.bit});")
        code.add(self._relayout())

    def _pop(self, node: Node, by: Node) -> None:
        stack, n = self._shift(node, by)
        size = len(stack.headers)
        self._move(stack, [(at, at + n) for at in range(size - n)], range(size - n, size), f">> {n}")

    def _push(self, node: Node, by: Node) -> None:
        stack, n = self._shift(node, by)
        size = len(stack.headers)
        self._move(stack, [(at, at - n) for at in range(size - 1, n - 1, -1)], range(n), f"<< {n}")

    # what becomes of the packet

    def _clone(self, session: Node, which: Node) -> None:
        kept = self._field_list(which)
        self.code.add(f"p->clone = 0x8000 | {self.scope.low(session, 15)};", f"p->clone_list = {kept};")

    def _field_list(self, which: Node) -> int:
        number = self.scope.number(which)
        if number.low != number.high or number.low not in self.program.field_lists:
            which.fail("no such field list")
        return number.low

    def _again(self, kind: int, which: Node) -> None:
        """At the end of the pipeline the packet comes again; `again` is the list of what it keeps, and one more."""
        where = {RESUBMIT: "end_ingress", RECIRCULATE: "end_egress"}[kind]
        if self.leave != where:
            which.cannot(f"resubmit() or recirculate() anywhere but in {where.removeprefix('end_')}")
        self.code.add(f"p->again = {self._field_list(which) + 1};")

    def _truncate(self, length: Node) -> None:
        """Cut what is sent to so many bytes, or to fewer if it was cut before; `cut` is one more, 0: not cut."""
        if self.leave != "end_ingress":
            length.cannot("truncate() anywhere but in ingress")
        if self.program.clones:
            length.cannot("truncate() in a program that clones")
        with self.code.block():
            self.code.add(f"u32 v = {self.scope.low(length, 31)} + 1;", "")
            self.code.add("if (!p->cut || v < p->cut)", "\tp->cut = v;")

    def _assert(self, test: Node) -> None:
        """A packet for which it is not true is dropped; BMv2 ends itself."""
        if not self.leave:
            test.cannot("assert(), in the parser")
        with self.code.block(f"if (!{self.scope.truth(test)})"):
            self._drop()
            self.code.add(f"goto {self.leave};")

    def _drop(self) -> None:
        self.code.add(f"p->m.{self.std('egress_spec').member} = {DROP_PORT};")
        self.code.add(f"p->m.{self.std('mcast_grp').member} = 0;")

    # state

    def _hash(self, target: Node, base: Node, calculation: Node, most: Node) -> None:
        found = self.scope.place(unwrap(target))
        name = calculation["value"].text()
        if found is None or name not in self.program.calculations:
            target.cannot(f"the result of the hash {name}")
        modulus = self.scope.number(most)
        with self.code.block():
            self.code.add("u64 h;", "")
            self.hashes.emit(self.code, self.scope, self.program.calculations[name], "h")
            if modulus.low == modulus.high:
                if modulus.low > 1 and modulus.low & (modulus.low - 1) == 0:
                    self.code.add(f"h &= {ones(modulus.low.bit_length() - 1)};")
                elif modulus.low < 1 << 64:
                    self.code.add(f"h %= {max(modulus.low, 1)}ULL;")
            else:
                with self.code.block():
                    self.code.add(f"u64 size = {self.scope.low(most, 64)};", "", "h = size ? h % size : 0;")
            self.put(*found, f"(h + {self.scope.low(base, 64)})")

    def _random(self, target: Node, low: Node, high: Node) -> None:
        found = self.scope.place(unwrap(target))
        if found is None or found[0].width > 32:
            target.cannot("random() of more than 32 bits, or into a field that the packet decides")
        self.put(*found, f"random_between({self.scope.low(low, 32)}, {self.scope.low(high, 32)})")

    def _array(self, node: Node, arrays: dict[str, Array]) -> Array:
        name = node["value"].text()
        if name not in arrays:
            node.fail(f"no {node.kind()} {name!r}")
        return arrays[name]

    def _count(self, counter: Node, index: Node) -> None:
        array = self._array(counter, self.program.counters)
        with self.code.cell("struct count", "c", f"c{array.index}", self.scope.low(index, 32)):
            self.code.add("c->packets += 1;", "c->bytes += p->wire_bytes;")

    def colour(self, meter: Meter) -> str:
        """C of the colour that the cell `m` gives the packet, and what it takes from the buckets."""
        return f"meter_colour(m, p->arrival_ns, {'1' if meter.packets else 'p->wire_bytes'})"

    def _execute_meter(self, node: Node, index: Node, target: Node) -> None:
        name = node["value"].text()
        found = self.scope.place(unwrap(target))
        if name not in self.program.meters or found is None:
            node.fail(f"no meter {name!r}, or no field for its colour")
        meter = self.program.meters[name]
        with self.code.cell("struct meter", "m", meter.map, self.scope.low(index, 32)):
            self.put(*found, self.colour(meter))

    def _register_read(self, target: Node, register: Node, index: Node) -> None:
        array = self._array(register, self.program.registers)
        found = self.scope.place(unwrap(target))
        if found is None:
            target.cannot("reading a register into this")
        kind = f"u{fields.c_bits(array.width)}"
        with self.code.cell(kind, "cell", f"g{array.index}", self.scope.low(index, 32)):
            self.put(*found, "(u64)*cell", clean=found[0].width >= array.width)

    def _register_write(self, register: Node, index: Node, source: Node) -> None:
        array = self._array(register, self.program.registers)
        kind = f"u{fields.c_bits(array.width)}"
        with self.code.cell(kind, "cell", f"g{array.index}", self.scope.low(index, 32)):
            self.code.add(f"*cell = {self.scope.low(source, array.width)};")
