# SPDX-License-Identifier: Apache-2.0
"""BMv2 JSON written by a test: a program without tables, whose ingress and egress are one list of statements each.

    doc = document({"x_t": [("a", 8), ("b", 8, True)]}, {"x": "x_t"}, ingress=[assign(field("x", "a"), number(5))])
    target = loaded(tmp_path, doc)

The parser extracts all headers in order, the deparser emits all that are valid, and the packet leaves
by port 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from p4c_ebpf.errors import ProgramError
from p4c_ebpf.translate import translate_text

from plugins.p4c_ebpf.tests.harness import EbpfTarget
from plugins.p4c_ebpf.tests.program_files import Document, committed

Json = dict[str, Any]
Make = Callable[[Document], EbpfTarget]


def refusal(of: Document) -> str:
    """Why a document, as x.json, is not translated."""
    with pytest.raises(ProgramError) as caught:
        translate_text(json.dumps(of), Path("x.json"))
    return str(caught.value)


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def header(name: str) -> Json:
    return {"type": "header", "value": name}


def apply(op: str, left: Json | None, right: Json, cond: Json | None = None) -> Json:
    """An operator with its operands."""
    value: Json = {"op": op, "left": left, "right": right}
    return {"type": "expression", "value": value if cond is None else {**value, "cond": cond}}


def element(stack: str, index: Json, at: int) -> Json:
    """Field number `at` of a stack's header at an index known at run time."""
    owner = apply("dereference_header_stack", {"type": "header_stack", "value": stack}, index)
    return {"type": "expression", "value": {"op": "access_field", "left": owner, "right": at}}


def statement(op: str, *parameters: Json) -> Json:
    return {"op": op, "parameters": list(parameters)}


def assign(target: Json, source: Json) -> Json:
    return statement("assign", target, source)


def document(
    types: Mapping[str, Sequence[tuple[str, int] | tuple[str, int, bool]]],
    headers: Mapping[str, str],
    ingress: Sequence[Json] = (),
    egress: Sequence[Json] = (),
    stacks: Mapping[str, Sequence[str]] | None = None,
    extracted: Sequence[str] | None = None,
    metadata: Sequence[str] = (),
) -> Document:
    """types: header type → fields (name, bits[, signed]), of a varbit minus its most; headers: name → type.

    metadata   headers that are not extracted
    extracted  the headers that the parser extracts, if not all
    """
    made = committed("l2")
    standard = next(one for one in made["header_types"] if one["name"] == "standard_metadata")
    real = [name for name in headers if name not in metadata]
    made["header_types"] = [standard] + [
        {
            "name": name,
            "id": at + 1,
            "fields": [[one[0], "*"] if one[1] < 0 else [*one, *([False] if len(one) == 2 else [])] for one in fields],
            "max_length": sum(abs(one[1]) for one in fields) // 8 if any(one[1] < 0 for one in fields) else None,
        }
        for at, (name, fields) in enumerate(types.items())
    ]
    made["headers"] = [
        {"name": name, "id": at, "header_type": kind, "metadata": name in (*metadata, "standard_metadata")}
        for at, (name, kind) in enumerate({"standard_metadata": "standard_metadata", **headers}.items())
    ]
    numbers = {one["name"]: one["id"] for one in made["headers"]}
    made["header_stacks"] = [
        {"name": name, "id": at, "header_type": headers[members[0]], "size": len(members),
         "header_ids": [numbers[one] for one in members]}
        for at, (name, members) in enumerate((stacks or {}).items())
    ]  # fmt: skip
    (state,) = made["parsers"][0]["parse_states"]
    state["parser_ops"] = [
        statement("extract", {"type": "regular", "value": name}) for name in (real if extracted is None else extracted)
    ]
    made["deparsers"][0]["order"] = real
    leave = assign(field("standard_metadata", "egress_spec"), number(1))
    made["actions"] = [
        {"name": name, "id": at, "runtime_data": [], "primitives": list(body)}
        for at, (name, body) in enumerate((("first", [leave, *ingress]), ("second", egress)))
    ]
    made["pipelines"] = [
        {"name": name, "id": at, "init_table": "all", "tables": [], "conditionals": [],
         "action_calls": [{"name": "all", "id": 0, "action_id": at, "next_node": None}]}
        for at, name in enumerate(("ingress", "egress"))
    ]  # fmt: skip
    return made


def loaded(folder: Path, made: Document) -> EbpfTarget:
    """The program in the kernel; the caller closes it."""
    path = folder / "program.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    return EbpfTarget(path)
