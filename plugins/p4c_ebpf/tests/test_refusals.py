# SPDX-License-Identifier: Apache-2.0
"""What can't be translated is refused with its place; a broken document is never anything but a ProgramError."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from p4c_ebpf.__main__ import main
from p4c_ebpf.errors import ProgramError
from p4c_ebpf.translate import translate, translate_text

from plugins.p4c_ebpf.tests.documents import apply, field, number, refusal, statement
from plugins.p4c_ebpf.tests.program_files import NAMES, PROGRAMS, Document, committed


def send(changed: Document) -> dict[str, Any]:
    """The first statement of l2's action `send`."""
    primitive: dict[str, Any] = changed["actions"][1]["primitives"][0]
    return primitive


PLACE = "l2.p4:42: standard.egress_spec = port: can't be translated: "


@pytest.mark.parametrize(
    ("op", "why"), [("assign_union", "an assignment of header unions"), ("sing", "the primitive sing")]
)
def test_primitives(op: str, why: str) -> None:
    changed = committed("l2")
    send(changed)["op"] = op
    assert refusal(changed) == PLACE + why


def test_jumps() -> None:
    changed = committed("l2")
    send(changed).update(op="_jump_if_zero", parameters=[])
    assert refusal(changed) == "l2.p4:42: _jump_if_zero: want 2 parameters; got 0"
    changed = committed("l2")
    jump = statement("_jump", number(1))
    operations = changed["parsers"][0]["parse_states"][0]["parser_ops"]
    operations.append(statement("primitive", jump))
    said = f"x.json: parsers[0].parse_states[0].parser_ops[{len(operations) - 1}].parameters[0]: can't be translated: "
    assert refusal(changed) == said + "a jump, in the parser"


LONG = number(2**128 - 1)
FIVE = number(5)
ADDRESS = field("ethernet", "dst")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (apply("*", ADDRESS, apply(">>", apply("*", ADDRESS, ADDRESS), ADDRESS)), "a product of more than 64 bits"),
        (apply(">>", apply("+", LONG, LONG), ADDRESS), "a result of more than 128 bits"),
        (apply(">>", ADDRESS, apply("-", ADDRESS, FIVE)), "a shift by a number that may be negative"),
        (apply("sideways", ADDRESS, ADDRESS), "the operation 'sideways'"),
        ({"type": "register", "value": ["r", ADDRESS]}, "a value of type register"),
        ({"type": "stack_field", "value": ["labels", "x"]}, "'labels' is not a stack of headers"),
    ],
)
def test_expressions(source: Any, why: str) -> None:
    changed = committed("l2")
    send(changed)["parameters"][1] = source
    assert refusal(changed) == PLACE + why


def test_tables() -> None:
    changed = committed("l2")
    changed["pipelines"][0]["tables"][0]["type"] = "sideways"
    assert refusal(changed) == "l2.p4:46: forward: can't be translated: a table of type sideways"
    changed["pipelines"][0]["tables"][0] |= {"type": "indirect", "action_profile": "p"}
    assert refusal(changed) == "l2.p4:46: no action profile 'p'"
    changed = committed("l2")
    changed["pipelines"][0]["tables"][0]["next_tables"]["ingress.send"] = "ingress.forward"
    assert refusal(changed) == "l2.p4:46: forward: can't be translated: a loop of tables"


@pytest.mark.parametrize(
    ("program", "path", "value", "place", "why"),
    [
        ("l2", "pipelines.0.tables.0.max_size", 2**21, "l2.p4:46: forward", "2097152 rows; want at most 1048576"),
        ("selector", "pipelines.0.action_profiles.0.max_size", 2**17, "selector.p4:19: paths",
         "131072 members; want at most 65536"),
        ("registers", "register_arrays.0.size", 2**25, "registers.p4:12: seen",
         "33554432 cells; want at most 16777216"),
        ("registers", "register_arrays.0.bitwidth", 4096, "registers.p4:12: seen",
         "4096 bits of the register ingress.seen; want at most 64"),
        ("counters", "counter_arrays.0.size", 2**25, "counters.p4:17: port_in",
         "33554432 cells; want at most 16777216"),
        ("meters", "meter_arrays.0.size", 2**32 - 1, "meters.p4:25: of_bytes",
         "4294967295 cells; want at most 16777216"),
        ("valuesets", "parse_vsets.0.max_size", 2**25, "x.json: parse_vsets[0].max_size",
         "33554432 members of the value set P.tunnels; want at most 16777216"),
        ("l2", "actions.1.runtime_data.0.bitwidth", 136, "x.json: actions[1].runtime_data[0].bitwidth",
         "136 bits of the parameter port; want at most 128"),
        ("l2", "header_types.2.fields.0.1", 4096, "x.json: header_types[2].fields[0][1]",
         "4096 bits of ethernet_t.dst; want at most 2048"),
        ("options", "header_types.5.max_length", 1004, "x.json: header_types[5]",
         "ipv4_options_t.data has up to 8032 bits; want a multiple of 8, at most 4096"),
    ],
)  # fmt: skip
def test_sizes(program: str, path: str, value: int, place: str, why: str) -> None:
    """One beyond a limit has the place of its declaration; it is no malformed document."""
    changed: Any = committed(program)
    owner, steps = changed, [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps[:-1]:
        owner = owner[step]
    owner[steps[-1]] = value
    assert refusal(changed) == f"{place}: can't be translated: {why}"


def test_constructs_are_called_by_their_p4_names() -> None:
    """And a place is the P4 line where p4c wrote one, else the place in the JSON."""
    changed = committed("l2")
    changed["header_union_types"] = [{"name": "u_t", "id": 0, "headers": []}]
    changed["headers"].append({"name": "u", "id": 9, "header_type": "u_t", "metadata": False})
    assert refusal(changed) == "x.json: headers[3]: can't be translated: u, a header union (u_t)"
    changed = committed("l2")
    which = apply("dereference_header_stack", {"type": "header_stack", "value": "s"}, ADDRESS)
    changed["pipelines"][0]["tables"][0]["key"][0]["target"] = which
    why = "this as a header at an index that the packet decides"
    assert refusal(changed) == f"l2.p4:46: forward: can't be translated: {why}"
    changed = committed("l2")
    valid = apply("b2d", None, apply("valid", None, which))
    send(changed)["parameters"][1] = valid
    assert refusal(changed) == f"{PLACE}'s' is not a stack of headers"
    send(changed).update(op="assign_header", parameters=[which, which])
    assert refusal(changed) == f"{PLACE}a header at an index that the packet decides"


def test_parser() -> None:
    changed = committed("l2")
    changed["parsers"][0]["parse_states"][0]["transitions"][0]["next_state"] = "start"
    said = "x.json: parsers[0].parse_states[0]: can't be translated: a loop that extracts into no stack"
    assert refusal(changed) == said


def test_another_architecture() -> None:
    changed = committed("l2")
    changed["deparsers"] *= 2
    assert "can't be translated: another architecture than v1model" in refusal(changed)
    changed = committed("l2")
    changed["pipelines"][0]["name"] = "main_control"
    assert refusal(changed).endswith("parsers parser; pipelines main_control, egress; deparsers deparser")


def test_standard_metadata() -> None:
    """What the switch reads and sets is metadata, whatever its name: a header of that name lies in packets."""
    changed = committed("l2")
    standard = next(one for one in changed["headers"] if one["name"] == "standard_metadata")
    standard["metadata"] = False
    assert refusal(changed) == "x.json: no metadata standard_metadata.egress_spec: want a program for v1model"


def test_header_types() -> None:
    changed = committed("l2")
    changed["header_types"][2]["fields"][0] = ["dst", 48, False, True]
    assert (
        refusal(changed) == "x.json: header_types[2].fields[0]: can't be translated: ethernet_t.dst, a saturating field"
    )
    changed["header_types"][2]["fields"][0][3] = False
    translate_text(json.dumps(changed), Path("x.json"))
    changed = committed("options")
    kind = next(one for one in changed["header_types"] if one.get("max_length"))
    kind["length_exp"] = {"type": "expression", "value": None}
    assert "whose length is that of an expression of P4-14" in refusal(changed)


def test_version() -> None:
    changed = committed("l2")
    for version in (1, 3):
        changed["__meta__"]["version"] = [version, 0]
        assert refusal(changed) == f"x.json: BMv2 JSON: want version 2.x; got {version}.0"
    changed["__meta__"]["version"] = 2
    assert "want an array" in refusal(changed)


def test_file(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"none.json: can't be read: "):
        translate(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"__meta__": ')
    with pytest.raises(ProgramError, match=r"half.json: not JSON: "):
        translate(tmp_path / "half.json")
    (tmp_path / "empty.json").write_text("")
    with pytest.raises(ProgramError, match=r"empty.json: not JSON: "):
        translate(tmp_path / "empty.json")


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(PROGRAMS / "l2.json")]) == 0
    assert 'SEC("tc") int switch_ingress' in capsys.readouterr().out
    assert main(["translate", "none.json"]) == 2
    assert capsys.readouterr().err.startswith("none.json: can't be read: ")
    assert main([]) == 2


@pytest.mark.parametrize("name", NAMES)
def test_translation_repeats(name: str) -> None:
    first, second = translate(PROGRAMS / f"{name}.json"), translate(PROGRAMS / f"{name}.json")
    assert first == second


def test_an_empty_table_costs_a_test() -> None:
    """The lookup stands behind the test of the number of rows."""
    text = translate(PROGRAMS / "l2.json").source
    before, after = text.split("if (needed[NEEDS_TABLE + 0] && control.t0.rows) {\n")
    assert "&t0" not in before.partition('SEC("tc") int')[2]
    assert after.index("bpf_map_lookup_elem(&t0, p->key)") < after.index("}")


def test_programs_are_current() -> None:
    """make -C plugins/p4c_ebpf/tests/programs, where p4c is installed."""
    listed = dict(
        reversed(line.split())
        for line in (PROGRAMS / "sources.sha256").read_text().splitlines()  # type: ignore[misc]
    )
    sources = [*PROGRAMS.glob("*.p4"), *PROGRAMS.glob("include/*.p4")]
    assert listed == {str(one.relative_to(PROGRAMS)): hashlib.sha256(one.read_bytes()).hexdigest() for one in sources}
    assert [path.stem for path in sorted(PROGRAMS.glob("*.p4"))] == NAMES


# mutated documents


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        if key != "source_info":
            found += places(child, (*path, key))
    return found


DOCUMENTS = {name: committed(name) for name in NAMES}
PLACES = {name: places(loaded) for name, loaded in DOCUMENTS.items()}

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(max_size=8), st.floats(allow_nan=False),
    st.sampled_from(["0x0", "-0xff", "ethernet", "start", "$valid$", "expression", "field", "hexstr", "header", "op"]),
)  # fmt: skip
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


@st.composite
def mutated(draw: Callable[..., Any]) -> Document:
    name = draw(st.sampled_from(NAMES))
    changed = copy.deepcopy(DOCUMENTS[name])
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PLACES[name]))
        owner: Any = changed
        try:
            for step in path[:-1]:
                owner = owner[step]
            what = draw(st.sampled_from(["delete", "replace", "move", "double"]))
            if what == "delete":
                del owner[path[-1]]
            elif what == "replace":
                owner[path[-1]] = draw(values)
            elif what == "double" and isinstance(owner, list):
                owner.append(copy.deepcopy(owner[path[-1]]))
            else:
                other: Any = DOCUMENTS[name]
                for step in draw(st.sampled_from(PLACES[name])):
                    other = other[step]
                owner[path[-1]] = copy.deepcopy(other)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier mutation took the place away
    return changed


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mutated())
def test_mutated_documents(changed: Document) -> None:
    with contextlib.suppress(ProgramError):
        translate_text(json.dumps(changed), Path("x.json"))
