# SPDX-License-Identifier: Apache-2.0
"""The parser as C: one label a state; a state reached with different fill of a stack is written once for each.

So a loop over a stack becomes a chain, and every index is known when the C is written.  Errors set
standard_metadata.parser_error and end parsing; the packet goes on, as in BMv2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from p4c_ebpf import fields
from p4c_ebpf.actions import Statements
from p4c_ebpf.code import Code
from p4c_ebpf.document import Node, unwrap
from p4c_ebpf.expression import Scope
from p4c_ebpf.fields import constant
from p4c_ebpf.hashes import Hashes
from p4c_ebpf.model import WIDEST, Header, Program, identifier

_MAX_STATES = 256
_MOST_AHEAD = 4096

Visit = tuple[str, tuple[int, ...]]
"""A state and the fill of each stack on entry."""


@dataclass
class _State:
    node: Node
    label: str
    nexts: dict[str, int]
    last: int = -1
    """The greatest place in the deparser's order of a header extracted so far."""
    onward: list[Visit] = field(default_factory=list)
    extracted: list[Header] = field(default_factory=list)


class Parser:
    """Writes the parser; afterwards `regular` says that headers lie in the packet as the deparser emits them."""

    def __init__(self, program: Program, hashes: Hashes, order: list[Header]) -> None:
        self.program = program
        self.hashes = hashes
        self.places = {header.name: at for at, header in enumerate(order)}
        self.regular = True
        (self.node,) = program.root["parsers"]
        self.states = {one["name"].text(): one for one in self.node["parse_states"]}
        self.filled = [*program.stacks, *program.union_stacks]
        self.value_sets: dict[str, tuple[int, ...]] = {}
        """Of each value set that a state selects by, the bits of its fields."""
        self._written: dict[Visit, _State] = {}
        self._extracted: list[Header] = []

    def emit(self, code: Code) -> None:
        """`at` holds the bytes parsed; the label `parsed` follows."""
        start: Visit = (self.node["init_state"].text(), tuple(0 for _ in self.filled))
        todo = [start]
        done: set[Visit] = set()
        while todo:
            visit = todo.pop()
            if visit in done:
                continue
            done.add(visit)
            if len(done) > _MAX_STATES:
                self.node.cannot(f"a parser of more than {_MAX_STATES} states, loops unrolled")
            state = self._visit(visit, self.node)
            self._state(code, state)
            todo += [one for one in reversed(state.onward) if one not in done]
        self._order()

    def _visit(self, visit: Visit, asking: Node) -> _State:
        if visit not in self._written:
            name, fill = visit
            if name not in self.states:
                asking.fail(f"no parser state {name!r}")
            label = f"parse_{len(self._written)}_{identifier(name)}"
            self._written[visit] = _State(self.states[name], label, dict(zip(self.filled, fill, strict=True)))
        return self._written[visit]

    # one state

    def _state(self, code: Code, state: _State) -> None:
        code.label(state.label)
        nexts = dict(state.nexts)
        scope = Scope(self.program, nexts=nexts)
        self._extracted = state.extracted
        for op in state.node["parser_ops"]:
            if not self._operation(code, scope, nexts, op):
                return
        self._transition(code, scope, state, nexts)

    def _fail(self, code: Code, node: Node, name: str) -> None:
        if name not in self.program.errors:
            node.fail(f"no error {name!r}")
        self._raise(code, str(self.program.errors[name]))

    def _raise(self, code: Code, error: str) -> None:
        used = self.program.standard("parser_error")
        if used is not None:
            code.add(f"p->m.{used.member} = {error};")
        code.add("goto parsed;")

    def _operation(self, code: Code, scope: Scope, nexts: dict[str, int], node: Node) -> bool:
        """False: the parser ends here, always."""
        op = node["op"].text()
        given = node["parameters"].items()
        statements = Statements(self.program, code, self.hashes, scope)
        want = {"extract": 1, "extract_VL": 2, "set": 2, "verify": 2, "advance": 1, "shift": 1, "primitive": 1}
        if op not in want:
            node.cannot(f"the parser operation {op}")
        if len(given) != want[op]:
            node.fail(f"{op}: want {want[op]} parameters; got {len(given)}")
        statements.note(node)
        if op == "extract":
            return self._extract(code, statements, nexts, given[0])
        elif op == "extract_VL":
            return self._extract_variable(code, statements, nexts, given[0], given[1])
        elif op == "set":
            source = unwrap(given[1])
            if not source.has("op") and source.kind() == "lookahead":
                found = scope.place(unwrap(given[0]))
                if found is None:
                    node.cannot("a lookahead into this")
                text = self._lookahead(code, source)
                statements.put(*found, text)
            else:
                statements.assign(given[0], given[1])
        elif op == "verify":
            with code.block(f"if (!{scope.truth(given[0])})"):
                self._raise(code, scope.low(given[1], 32))
        elif op == "primitive":
            if "parameters" in given[0].members():
                statements.primitive(given[0], {})
        else:
            self._advance(code, scope, given[0], op)
        return True

    def _next(self, nexts: dict[str, int], what: Node) -> Header | None:
        """The header that is extracted into; None: its stack is full."""
        kind = what.kind()
        if kind == "regular":
            return self.program.header(what["value"])
        if kind == "stack":
            stack = self.program.stack(what["value"])
            name, headers = stack.name, stack.headers
        elif kind == "union_stack":
            which, member = what["value"].pair()
            name = which.text()
            headers = tuple(self.program.member(one, member) for one in self.program.union_stack(which))
        else:
            what.cannot(f"extracting into a {kind}")
        if nexts[name] >= len(headers):
            return None
        nexts[name] += 1
        return headers[nexts[name] - 1]

    def _extract(self, code: Code, statements: Statements, nexts: dict[str, int], what: Node) -> bool:
        """False: the parser ends here, always."""
        header = self._next(nexts, what)
        if header is None:
            self._fail(code, what, "StackOutOfBounds")
            return False
        if header.metadata:
            what.cannot(f"extracting {header.name}, which is metadata")
        if not header.bytes:
            code.add(f"p->valid |= {header.mask};")
            statements.alone(header)
            return True
        with code.block(f"if (bpf_skb_load_bytes(skb, at, p->head + {header.base}, {header.bytes}))"):
            self._fail(code, what, "PacketTooShort")
        code.add(f"p->valid |= {header.mask};", f"at += {header.bytes};")
        statements.alone(header)
        self._extracted.append(header)
        return True

    def _extract_variable(
        self, code: Code, statements: Statements, nexts: dict[str, int], what: Node, bits: Node
    ) -> bool:
        """A header whose varbit has `bits` bits; P4-16, section 12.8.2.  False: the parser ends here, always."""
        asked = statements.scope.low(bits, 32)  # of the headers extracted so far
        header = self._next(nexts, what)
        if header is None:
            self._fail(code, what, "StackOutOfBounds")
            return False
        if not header.extra:
            what.cannot(f"extracting {header.name} with a length: it has no field of variable length")
        first = header.base + header.bytes
        with code.block():
            code.add(f"u64 more = {asked};", "")
            with code.block("if (more & 7)"):
                self._fail(code, what, "ParserInvalidArgument")
            code.add("more /= 8;")
            with code.block(f"if (at + {header.bytes} + more > skb->len)"):
                self._fail(code, what, "PacketTooShort")
            with code.block(f"if (more > {header.extra})"):
                self._fail(code, what, "HeaderTooShort")
            code.add(f"__builtin_memset(p->head + {first}, 0, {header.extra});")
            if header.bytes:
                with code.block(f"if (bpf_skb_load_bytes(skb, at, p->head + {header.base}, {header.bytes}))"):
                    self._fail(code, what, "PacketTooShort")
            load = f"bpf_skb_load_bytes(skb, at + {header.bytes}, p->head + {first}, at_most(more, {header.bound}))"
            with code.block(f"if (more && {load})"):
                self._fail(code, what, "PacketTooShort")
            code.add(f"{header.length} = more;", f"at += {header.bytes} + more;")
        code.add(f"p->valid |= {header.mask};")
        statements.alone(header)
        self._extracted.append(header)
        return True

    def _lookahead(self, code: Code, node: Node) -> str:
        """Load what lies ahead into the scratch behind the headers; C of its value."""
        ahead, length = node["value"].pair()
        offset = ahead.size(_MOST_AHEAD, "bits before those of a lookahead", least=0)
        width = length.size(WIDEST, "bits of a lookahead")
        first, size = offset // 8, (offset % 8 + width + 7) // 8
        peek = self.program.head_bytes
        with code.block(f"if (bpf_skb_load_bytes(skb, at + {first}, p->head + {peek}, {size}))"):
            self._fail(code, node, "PacketTooShort")
        return fields.load_bits(str(peek), offset % 8, width)

    def _advance(self, code: Code, scope: Scope, by: Node, op: str) -> None:
        self.regular = False
        with code.block():
            bits = scope.low(by, 32) if op == "advance" else f"({by.number()} * 8ULL)"
            code.add(f"u64 by = {bits};", "")
            with code.block("if (by & 7)"):
                self._fail(code, by, "ParserInvalidArgument")
            with code.block("if (at + by / 8 > skb->len)"):
                self._fail(code, by, "PacketTooShort")
            code.add("at += by / 8;")

    # where to go

    def _transition(self, code: Code, scope: Scope, state: _State, nexts: dict[str, int]) -> None:
        keys: list[tuple[str, int]] = []
        cases = state.node["transitions"].items()
        with code.block():
            for number, key in enumerate(state.node["transition_key"]):
                if key.kind() == "lookahead":
                    text, width = self._lookahead(code, key), key["value"].pair()[1].number()
                else:
                    found = scope.place(key)
                    if found is None:
                        key.cannot(f"selecting by a value of type {key.kind()}")
                    text, width = fields.load(*found), found[0].width
                code.add(f"{'u64' if width <= 64 else 'u128'} k{number} = {text};")
                keys.append((f"k{number}", width))
            for case in cases:
                if case["type"].text() != "default":
                    self._case(code, state, nexts, case, keys)
            defaults = [case for case in cases if case["type"].value == "default"]
            code.add(f"goto {self._aim(state, nexts, defaults[0]) if defaults else 'parsed'};")

    def _aim(self, state: _State, nexts: dict[str, int], case: Node) -> str:
        if not case.has("next_state"):
            return "parsed"
        visit = case["next_state"].text(), tuple(nexts.values())
        state.onward.append(visit)
        return self._visit(visit, case).label

    def _case(self, code: Code, state: _State, nexts: dict[str, int], case: Node, keys: list[tuple[str, int]]) -> None:
        if case.kind() == "parse_vset":
            self._value_set(code, case, keys, self._aim(state, nexts, case))
            return
        if case.kind() != "hexstr":
            case.cannot(f"a transition by {case.kind()}")
        value = case["value"].hexadecimal()
        mask = case["mask"].hexadecimal() if case.has("mask") else -1
        tests = []
        for name, width in reversed(keys):
            size = (width + 7) // 8 * 8
            mine, wanted = mask & (1 << width) - 1, value & (1 << size) - 1
            value, mask = value >> size, mask >> size
            if mine == 0:
                continue
            own = name if mine == (1 << width) - 1 else f"({name} & {constant(mine)})"
            tests.append(f"{own} == {constant(wanted & mine)}")
        aim = self._aim(state, nexts, case)
        code.add(f"if ({' && '.join(reversed(tests)) or '1'})", f"\tgoto {aim};")

    def _value_set(self, code: Code, case: Node, keys: list[tuple[str, int]], aim: str) -> None:
        """Go to `aim` if what is selected by is in the set."""
        name, widths = case["value"].text(), tuple(width for _, width in keys)
        if name not in self.program.value_sets:
            case.fail(f"no value set {name!r}")
        one = self.program.value_sets[name]
        if case.has("mask") or sum(widths) != one.width or self.value_sets.setdefault(name, widths) != widths:
            case.cannot(f"the value set {name} with a mask, or with fields of other widths")
        behind = [sum(widths[at + 1 :]) for at in range(len(keys))]
        parts = [f"(u128){key} << {shift}" for (key, _), shift in zip(keys, behind, strict=True)]
        with code.block():
            code.add(f"u128 all = {' | '.join(parts)};", "u64 words[2] = { all >> 64, all };", "")
            code.add(f"if (bpf_map_lookup_elem(&v{one.index}, words))", f"\tgoto {aim};")

    # the whole

    def _sorted(self) -> list[_State]:
        """The states, each before those it leads to; one that leads back to itself never ends."""
        leads_to = {visit: state.onward for visit, state in self._written.items()}
        try:
            order = [*TopologicalSorter(leads_to).static_order()]
        except CycleError as error:
            last = max(error.args[1], key=list(leads_to).index)
            self._written[last].node.cannot("a loop that extracts into no stack")
        return [self._written[visit] for visit in reversed(order)]

    def _order(self) -> None:
        """Are headers extracted in the order of the deparser on every path?"""
        for state in self._sorted():
            last = state.last
            for header in state.extracted:
                place = self.places.get(header.name, -1)
                self.regular = self.regular and place > last
                last = max(last, place)
            for onward in state.onward:
                self._written[onward].last = max(self._written[onward].last, last)
