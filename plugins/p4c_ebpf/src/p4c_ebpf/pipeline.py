# SPDX-License-Identifier: Apache-2.0
"""A pipeline (ingress or egress) as C: tables and conditionals in order, each a label, joined by goto."""

from __future__ import annotations

from p4c_ebpf.actions import Statements
from p4c_ebpf.code import Code
from p4c_ebpf.document import Node
from p4c_ebpf.expression import Scope
from p4c_ebpf.fields import constant
from p4c_ebpf.hashes import Hashes
from p4c_ebpf.layout import MAX_CHOICES, NO_ACTION, REFERENCE, Param, Preset, Table
from p4c_ebpf.model import Action, Program, comment, identifier
from p4c_ebpf.tables import Lookup, lay_out, number_of, params_of


class Pipeline:
    """One pipeline of the JSON."""

    def __init__(self, program: Program, node: Node, hashes: Hashes) -> None:
        self.program, self.node, self.hashes = program, node, hashes
        self.name = identifier(node["name"].text())
        self.tables: dict[str, Table] = {}
        self._nodes: dict[str, Node] = {}
        for kind in ("tables", "conditionals", "action_calls"):
            for one in node.section(kind):
                if one["name"].text() in self._nodes:
                    one.fail(f"two nodes are called {one['name'].text()!r}")
                self._nodes[one["name"].text()] = one

    def lay_out(self, index: int, control: int) -> int:
        """Number the tables from `index`; returns where the control map ends."""
        for one in self.node["tables"]:
            table = lay_out(self.program, one, index + len(self.tables), control)
            self.tables[table.name] = table
            if not (table.kind == "none" and table.constant):
                control += table.control_bytes
        return control

    # order

    def _onward(self, node: Node) -> list[str]:
        if node.has("expression"):
            nexts = [node["true_next"], node["false_next"]]
        elif node.has("next_tables"):
            nexts = list(node["next_tables"].members().values())
            if node.has("base_default_next"):
                nexts.append(node["base_default_next"])
        else:
            nexts = [node["next_node"]]
        found = []
        for one in nexts:
            if not one.null:
                if one.text() not in self._nodes:
                    one.fail(f"no table or condition {one.text()!r}")
                found.append(one.text())
        return found

    def _sorted(self) -> list[str]:
        """The nodes that can be reached, each before those it leads to."""
        if not self.node.has("init_table"):
            return []
        start = self.node["init_table"].text()
        if start not in self._nodes:
            self.node["init_table"].fail(f"no table or condition {start!r}")
        done: list[str] = []
        open_: set[str] = {start}
        stack: list[tuple[str, list[str]]] = [(start, self._onward(self._nodes[start]))]
        while stack:
            name, onward = stack[-1]
            if not onward:
                stack.pop()
                open_.discard(name)
                done.append(name)
                continue
            following = onward.pop()
            if following in open_:
                self._nodes[following].cannot("a loop of tables")
            if following not in done:
                open_.add(following)
                stack.append((following, self._onward(self._nodes[following])))
        return done[::-1]

    # C

    def emit(self, code: Code) -> None:
        """Falls through to the label end_NAME."""
        end = f"end_{self.name}"
        order = self._sorted()
        if not order:
            code.label(end)
            return
        labels = {name: f"{self.name}_{at}_{identifier(name)}" for at, name in enumerate(order)}
        for name in order:
            node = self._nodes[name]
            code.add("")
            code.label(labels[name])
            code.add(f"/* {comment(node.where.rpartition('/')[2])}: {comment(node.fragment)} */")
            if node.has("expression"):
                test = Scope(self.program).truth(node["expression"])
                code.add(f"if ({test})", f"\tgoto {self._label(node['true_next'], labels)};")
                code.add(f"goto {self._label(node['false_next'], labels)};")
            elif node.has("action_id"):
                self._run(code, self._action(node["action_id"]), {})
                code.add(f"goto {self._label(node['next_node'], labels)};")
            else:
                with code.block():
                    self._table(code, node, labels)
        code.label(end)

    def _label(self, node: Node, labels: dict[str, str]) -> str:
        return f"end_{self.name}" if node.null else labels[node.text()]

    def _action(self, node: Node) -> Action:
        if node.number() not in self.program.actions:
            node.fail(f"no action {node.number()}")
        return self.program.actions[node.number()]

    def _run(self, code: Code, action: Action, data: dict[str, str]) -> None:
        scope = Scope(self.program, action.params, data)
        Statements(self.program, code, self.hashes, scope, f"end_{self.name}").action(action)

    def _next(self, node: Node, labels: dict[str, str], action: str, hit: bool) -> str:
        """Where to go after a table; hit and miss come before the action's own (match_tables.cpp)."""
        nexts = node["next_tables"].members()
        for key in ("__HIT__" if hit else "__MISS__", action):
            if key in nexts:
                return self._label(nexts[key], labels)
        return self._label(node["base_default_next"], labels) if node.has("base_default_next") else f"end_{self.name}"

    def _table(self, code: Code, node: Node, labels: dict[str, str]) -> None:
        table = self.tables[node["name"].text()]
        by_name = {one.name: one for one in map(self._action, node["action_ids"])}
        default = self._action(node["default_entry"]["action_id"]) if table.default.action else None
        if default is not None:
            by_name = {default.name: default} | by_name
        n = table.index
        if default is not None and table.kind == "none" and table.constant:
            self._run(code, default, _presets(default, table.default))
            code.add(f"goto {self._next(node, labels, table.default.action, False)};")
            return
        if table.kind == "none":
            code.add(f"struct row{n} *r = NULL;", "")
        else:
            Lookup(self.program, node, table).emit(code)
        if table.direct and table.kind != "none":
            with code.cell("struct count", "c", f"d{n}", "r->slot", where="if (r)"):
                code.add("c->packets += 1;", "c->bytes += p->wire_bytes;")
        if table.meter and table.kind != "none":
            self._meter(code, table)
        by_hit = any(key in node["next_tables"].members() for key in ("__HIT__", "__MISS__"))
        if by_hit:
            code.add("u32 hit = !!r;", "")
        if default is not None and table.constant:
            with code.block("if (!r)"):
                self._run(code, default, _presets(default, table.default))
                code.add(f"goto {self._next(node, labels, default.name, False)};")
        else:
            code.add("if (!r)", f"\tr = &control.t{n}.fallback;")
        after = f"end_{self.name}"
        if table.profile:
            after = self._next(node, labels, "", True)
            with code.block(f"if (r->action == {REFERENCE:#x})"):
                self._follow(code, table)
                code.add("if (!r)", f"\tgoto {after};")
        with code.block("switch (r->action)"):
            if default is None:
                code.add(f"case {NO_ACTION:#x}:", f"\tgoto {self._next(node, labels, '', False)};")
            for action in by_name.values():
                code.add(f"case {number_of(self.program, table.profile, action)}:")
                with code.block(""):
                    self._run(code, action, _row_data(params_of(action)))
                    if by_hit and not table.constant:
                        code.add("if (hit)", f"\tgoto {self._next(node, labels, action.name, True)};")
                        code.add(f"goto {self._next(node, labels, action.name, False)};")
                    else:
                        code.add(f"goto {self._next(node, labels, action.name, True)};")
        code.add(f"goto {after};")

    def _meter(self, code: Code, table: Table) -> None:
        """The direct meter of the row `r`."""
        meter = self.program.direct_meters[table.name]
        assert meter.target is not None
        found = self.program.field(meter.target)
        with code.cell("struct meter", "m", f"p{table.index}", "r->slot", where="if (r)"):
            statements = Statements(self.program, code, self.hashes, Scope(self.program))
            statements.put(found, self.program.headers[found.header], statements.colour(meter))

    def _follow(self, code: Code, table: Table) -> None:
        """Let `r` be the member that the row refers to, NULL if there is none."""
        profile = self.program.profiles[table.profile]
        k = profile.index
        code.add("u32 at = r->data[0];", "")
        if profile.selector is not None:
            with code.block("if (r->data[0] >> 32)"):
                code.add(f"struct choices{k} *s = bpf_map_lookup_elem(&s{k}, &at);", "u64 h;", "")
                self.hashes.emit(code, Scope(self.program), profile.selector, "h")
                code.add("at = ~0U;")
                with code.block("if (s && s->many)"):
                    code.add("h %= s->many;", "opaque(h);", f"if (h < {MAX_CHOICES})", "\tat = s->member[h];")
        code.add(f"r = bpf_map_lookup_elem(&a{k}, &at);")


def _row_data(params: tuple[Param, ...]) -> dict[str, str]:
    """C of each parameter in the row `r`."""
    return {
        one.name: f"r->data[{one.word}]"
        if one.width <= 64
        else f"(((u128)r->data[{one.word}] << 64) | r->data[{one.word + 1}])"
        for one in params
    }


def _presets(action: Action, preset: Preset) -> dict[str, str]:
    return {one.name: constant(value) for one, value in zip(action.params, preset.params, strict=True)}
