# SPDX-License-Identifier: Apache-2.0
"""Tables: how their keys and rows lie in maps, from the JSON, and the C that looks a packet up."""

from __future__ import annotations

from typing import Literal, cast

from p4c_ebpf import fields, layout
from p4c_ebpf.code import Code, map_of
from p4c_ebpf.document import Node, unwrap
from p4c_ebpf.expression import Scope
from p4c_ebpf.fields import constant
from p4c_ebpf.layout import MAX_CHOICES, MAX_RANGES, MAX_TUPLES, Key, Kind, Match, Param, Preset, Table
from p4c_ebpf.model import Action, Profile, Program, comment

_MATCHES = ("exact", "ternary", "lpm", "range", "valid")
_MAX_ROWS = 1 << 20


def params_of(action: Action) -> tuple[Param, ...]:
    """The action's parameters as words of a row's `data`."""
    found: list[Param] = []
    word = 0
    for one in action.params:
        found.append(Param(one.name, one.width, word))
        word += 1 if one.width <= 64 else 2
    return tuple(found)


def words_of(action: Action) -> int:
    return sum(1 if one.width <= 64 else 2 for one in action.params)


def _target(program: Program, key: Node) -> tuple[str, int]:
    """C of a key, and its width."""
    target, scope = key["target"], Scope(program)
    if isinstance(target.value, dict):  # of a header at an index that the packet decides
        _, field, _, _ = scope.element(unwrap(target))
        return scope.low(target, field.width), field.width
    if key["match_type"].text() == "valid":
        return program.header(target).validity, 1
    owner, name = target.pair()
    if name.text() == "$valid$":
        return scope.chosen_valid(owner) if isinstance(owner.value, dict) else program.header(owner).validity, 1
    field = program.field(target)
    if field.variable:
        key.cannot(f"a key of variable length, {field.header}.{field.name}")
    return fields.load(field, program.headers[field.header]), field.width


def _keys(program: Program, table: Node) -> tuple[list[Key], dict[str, int]]:
    """Keys packed into words, the widest first in each part; and the number of words of each part."""
    raw: list[tuple[str, Match, int, Literal["exact", "masked", "range"], int]] = []
    for key in table["key"]:
        match = key["match_type"].text()
        if match not in _MATCHES:
            key.cannot(f"matching by {match}")
        _, width = _target(program, key)
        if match == "range" and width > 64:
            key.cannot(f"a range of a field of {width} bits; want at most 64")
        name = key["name"].text()
        cut = key["mask"].hexadecimal() & (1 << width) - 1 if key.has("mask") else (1 << width) - 1
        part: Literal["exact", "masked", "range"] = (
            "range" if match == "range" else "masked" if match in ("ternary", "lpm") else "exact"
        )
        raw.append((name, cast(Match, match), width, part, cut))
    if len({one[0] for one in raw}) != len(raw):
        table.fail("two keys of one name")
    words = {"exact": 0, "masked": 0, "range": 0}
    placed: dict[str, Key] = {}
    for name, match, width, part, cut in sorted(raw, key=lambda one: -one[2]):
        if width > 64:
            placed[name] = Key(name, match, width, part, words[part], 0, cut)
            words[part] += 2
            continue
        space = [
            (word, sum(k.width for k in placed.values() if k.part == part and k.word == word and k.width <= 64))
            for word in range(words[part])
            if not any(k.width > 64 and k.part == part and k.word <= word <= k.word + 1 for k in placed.values())
        ]
        fit = next(((word, used) for word, used in space if part != "range" and used + width <= 64), None)
        if fit is None:
            fit = (words[part], 0)
            words[part] += 1
        placed[name] = Key(name, match, width, part, *fit, cut)
    return [placed[one[0]] for one in raw], words


def _preset(program: Program, node: Node, table: Node) -> tuple[Action, tuple[int, ...]]:
    number = node["action_id"].number()
    if number not in program.actions:
        node.fail(f"no action {number}")
    action = program.actions[number]
    data = [one.hexadecimal() for one in node.section("action_data")]
    if len(data) != len(action.params) or any(
        not -(1 << p.width - 1) <= value < 1 << p.width for value, p in zip(data, action.params, strict=True)
    ):
        table.fail(f"action {action.name}: parameters don't fit")
    return action, tuple(value % (1 << p.width) for value, p in zip(data, action.params, strict=True))


def _entries(program: Program, table: Node, keys: list[Key]) -> tuple[Preset, ...]:
    found = []
    for entry in table.section("entries"):
        action, data = _preset(program, entry["action_entry"], table)
        given = entry["match_key"].items()
        if len(given) != len(keys):
            entry.fail(f"want {len(keys)} keys; got {len(given)}")
        matches = []
        for key, one in zip(keys, given, strict=True):
            kind = one["match_type"].text()
            members = {"lpm": ("key", "prefix_length"), "ternary": ("key", "mask"), "range": ("start", "end")}
            first, second = members.get(kind, ("key", ""))
            value = int(one[first].flag()) if kind == "valid" else one[first].hexadecimal()
            value += (value < 0) << key.width  # of int<N>; a range of those is not taken
            other = 0
            if second:
                other = one[second].number(0, 128) if kind == "lpm" else one[second].hexadecimal()
            matches.append((key.name, kind, value, other))
        lowest_first = entry["priority"].number(0, 2**31 - 1) if entry.has("priority") else 0
        found.append(Preset(action.name, data, tuple(matches), 2**31 - 1 - lowest_first))
    return tuple(found)


def _shared(program: Program, profile: str) -> list[Action]:
    """The actions of all tables of an action profile: their rows and its members have one size."""
    numbers = [
        number.number()
        for pipeline in program.root["pipelines"]
        for table in pipeline["tables"]
        if profile and table.has("action_profile") and table["action_profile"].value == profile
        for number in table["action_ids"]
    ]
    return [program.actions[number] for number in numbers if number in program.actions]


def number_of(program: Program, profile: str, action: Action) -> int:
    """What a row or a member has as its action: p4c numbers an action anew in each table, a member is of all."""
    return min((one.index for one in _shared(program, profile) if one.name == action.name), default=action.index)


def lay_out_profile(program: Program, profile: Profile) -> layout.Profile:
    words = max([1, *(words_of(one) for one in _shared(program, profile.name))])
    return layout.Profile(profile.name, profile.index, profile.size, profile.selector is not None, words)


def lay_out(program: Program, node: Node, index: int, control: int) -> Table:
    """A table of the JSON; `control` is where the next free byte of the control map is."""
    name = node["name"].text()
    kinds = ("simple", "indirect", "indirect_ws")
    if node["type"].text() not in kinds:
        node.cannot(f"a table of type {node['type'].text()}")
    profile = node["action_profile"].text() if node["type"].text() != "simple" else ""
    if profile and profile not in program.profiles:
        node.fail(f"no action profile {profile!r}")
    if profile and not node["key"].items():
        node.cannot("an action profile of a table without keys")
    keys, words = _keys(program, node)
    matches = {key.match for key in keys}
    kind: Kind = "none" if not keys else "ranges" if "range" in matches else "tuples" if words["masked"] else "exact"
    actions = []
    for number in node["action_ids"]:
        if number.number() not in program.actions:
            number.fail(f"no action {number.number()}")
        actions.append(program.actions[number.number()])
    constant_default, preset = False, Preset("", ())
    if node.has("default_entry"):
        default, data = _preset(program, node["default_entry"], node)
        actions.insert(0, default)
        preset = Preset(default.name, data)
        fixed = node["default_entry"]
        flags = ("action_const", "action_entry_const")
        constant_default = any(fixed.has(flag) and fixed[flag].flag() for flag in flags)
    capacity = min(node["max_size"].size(_MAX_ROWS, "rows"), MAX_RANGES if kind == "ranges" else _MAX_ROWS)
    lpm = [key.width for key in keys if key.match == "lpm"]
    only_lpm = bool(lpm) and not matches & {"ternary", "range"}
    return Table(
        name=name,
        index=index,
        kind=kind,
        capacity=capacity,
        keys=tuple(keys),
        actions=tuple(
            layout.Action(one.name, number_of(program, profile, one), params_of(one))
            for one in {one.name: one for one in actions}.values()
        ),
        default=preset,
        constant=constant_default,
        entries=_entries(program, node, keys),
        fixed=node.has("entries"),
        direct=program.direct.get(name, ""),
        exact_words=words["exact"],
        masked_words=words["masked"],
        range_words=words["range"],
        data_words=max([1, *(words_of(one) for one in [*actions, *_shared(program, profile)])]),
        control=control,
        tuples=min(capacity, lpm[0] + 1 if only_lpm else MAX_TUPLES) if kind == "tuples" else 0,
        meter=program.direct_meters[name].name if name in program.direct_meters else "",
        profile=profile,
    )


def maps(table: Table) -> str:
    """C: the table's types and maps."""
    n, words = table.index, table.hash_words
    text = (
        f"/* {comment(table.name)} */\n"
        f"struct row{n} {{\n\tu32 action, priority, slot, spare;\n\tu64 data[{table.data_words}];\n}};\n"
    )
    if table.kind == "none":
        return text + "\n"
    if words:
        value = f"struct row{n}" if table.kind != "ranges" else "struct bucket"
        text += f"struct key{n} {{\n\tu64 word[{words}];\n}};\n"
        text += map_of(f"t{n}", "HASH", table.capacity, value, f"__type(key, struct key{n})")
    if table.meter:
        text += map_of(f"p{n}", "ARRAY", table.capacity, "struct meter")
    if table.direct:
        text += map_of(f"d{n}", "PERCPU_ARRAY", table.capacity, "struct count")
    return text + "\n"


def profile_maps(profile: layout.Profile) -> str:
    """C: the members of an action profile and the groups of a selector."""
    n = profile.index
    text = (
        f"/* {comment(profile.name)} */\n"
        f"struct member{n} {{\n\tu32 action, priority, slot, spare;\n\tu64 data[{profile.data_words}];\n}};\n"
        + map_of(f"a{n}", "ARRAY", profile.size, f"struct member{n}")
    )
    if profile.selector:
        text += f"struct choices{n} {{\n\tu32 many, member[{MAX_CHOICES}];\n}};\n"
        text += map_of(f"s{n}", "ARRAY", profile.size, f"struct choices{n}")
    return text + "\n"


def control(table: Table) -> list[str]:
    """C members of struct control."""
    n = table.index
    lines = ["struct {", "\tu32 rows, tuples;", f"\tstruct row{n} fallback;"]
    if table.kind == "tuples":
        mask = table.exact_words + table.masked_words
        lines.append(f"\tstruct {{ u64 mask[{mask}]; u32 id, highest; }} tuple[{table.tuples}];")
    elif table.kind == "ranges":
        parts = []
        if table.masked_words:
            parts.append(f"u64 mask[{table.masked_words}], value[{table.masked_words}];")
        parts.append(f"u64 low[{table.range_words}], high[{table.range_words}];")
        lines.append(f"\tstruct {{ {' '.join(parts)} struct row{n} row; }} range[{table.capacity}];")
    return [*lines, f"}} t{n};"]


class Lookup:
    """Writes the lookup in one table: afterwards `r` points to the matching row or is NULL."""

    def __init__(self, program: Program, node: Node, table: Table) -> None:
        self.program, self.node, self.table = program, node, table

    def emit(self, code: Code) -> None:
        n = self.table.index
        code.add(f"struct row{n} *r = NULL;", "")
        with code.block(f"if (needed[NEEDS_TABLE + {n}] && control.t{n}.rows)"):
            self._key(code)
            getattr(self, f"_{self.table.kind}")(code, n)

    def _key(self, code: Code) -> None:
        """Exact words, then masked ones, then ranges, in p->key."""
        table = self.table
        starts = {"exact": 0, "masked": table.exact_words, "range": table.exact_words + table.masked_words}
        words: dict[int, list[str]] = {}
        for key, node in zip(table.keys, self.node["key"].items(), strict=True):
            text, width = _target(self.program, node)
            if key.cut != (1 << width) - 1:
                text = f"({text} & {constant(key.cut)})"
            at = starts[key.part] + key.word
            if width > 64:
                words[at], words[at + 1] = [f"(u64)({text} >> 64)"], [f"(u64){text}"]
            else:
                words.setdefault(at, []).append(f"((u64){text} << {key.shift})" if key.shift else f"(u64){text}")
        code.add(*(f"p->key[{at}] = {' | '.join(parts)};" for at, parts in sorted(words.items())))

    def _exact(self, code: Code, n: int) -> None:
        code.add(f"r = bpf_map_lookup_elem(&t{n}, p->key);")

    def _tuples(self, code: Code, n: int) -> None:
        table = self.table
        code.add(f"struct row{n} *found;", "")
        with code.block(f"for (u32 i = 0; i < {table.tuples}; i++)"):
            code.add(f"if (i >= control.t{n}.tuples || (r && r->priority > control.t{n}.tuple[i].highest))", "\tbreak;")
            code.add(f"p->probe[0] = control.t{n}.tuple[i].id;")
            for at in range(table.exact_words + table.masked_words):
                code.add(f"p->probe[{at + 1}] = p->key[{at}] & control.t{n}.tuple[i].mask[{at}];")
            code.add(f"found = bpf_map_lookup_elem(&t{n}, p->probe);")
            code.add("if (found && (!r || found->priority > r->priority))", "\tr = found;")

    def _ranges(self, code: Code, n: int) -> None:
        table = self.table
        masked, ranges = table.exact_words, table.exact_words + table.masked_words
        code.add(f"u32 first = 0, many = control.t{n}.rows;", "", "p->hit = ~0U;")
        if table.exact_words:
            code.add(f"struct bucket *b = bpf_map_lookup_elem(&t{n}, p->key);", "", "many = 0;")
            with code.block("if (b)"):
                code.add("first = b->first;", "many = b->rows;")
        with code.block(f"for (u32 i = 0; i < {table.capacity}; i++)"):
            code.add("u64 at = first + i, differs = 0;", "", "opaque(at);")
            code.add(f"if (i >= many || at >= {table.capacity})", "\tbreak;")
            place = f"control.t{n}.range[at]"
            for at in range(table.masked_words):
                code.add(f"differs |= (p->key[{masked + at}] & {place}.mask[{at}]) ^ {place}.value[{at}];")
            tests = ["!differs"] if table.masked_words else []
            tests += [
                f"p->key[{ranges + at}] - {place}.low[{at}] <= {place}.high[{at}] - {place}.low[{at}]"
                for at in range(table.range_words)
            ]
            with code.block(f"if ({' && '.join(tests)})"):
                code.add("p->hit = at;", "break;")
        code.add(
            "first = *(volatile u32 *)&p->hit;",
            f"if (first < {table.capacity})",
            f"\tr = &control.t{n}.range[first].row;",
        )
