# SPDX-License-Identifier: Apache-2.0
"""A plan's P4 program: the dry run states what is wrong with it, and `testctl p4 check` prints its tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from testctl.plan import load_plan
from testctl_agent.spec.errors import PlanError

from tests.cli_commands import call

pytest.importorskip("p4c_ebpf")
PROGRAMS = Path(__file__).parents[3] / "plugins" / "p4c_ebpf" / "tests" / "programs"
PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, bytes, 1MB]
"""
ROUTE = "table_add routes ingress.to 10.0.0.2/32 => receiver receiver\n"


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """The directory of a plan, with programs and files of rows."""
    shutil.copy(PROGRAMS / "router.json", tmp_path)
    router = json.loads((PROGRAMS / "router.json").read_text())
    files = {
        "two_parsers.json": json.dumps(router | {"parsers": router["parsers"] * 2}),
        "other.json": '{"tables": []}',
        "broken.json": '{"parsers": [',
        "routes.txt": ROUTE,
        "two_routes.txt": ROUTE * 2,
        "broken_rows.json": '{"table_entries": [\n  {]}',
        "program.p4": "#include <v1model.p4>\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def refusal(where: Path, *tuples: str, testbed: str = "lab") -> str:
    lines = "".join(f"  - [{given}]\n" for given in tuples)
    (where / "plan.yaml").write_text(PLAN + lines)
    with pytest.raises(PlanError) as refused:
        load_plan(where / "plan.yaml", metrics={}, testbed=testbed)
    return str(refused.value).removeprefix(f"{where}/")


OWN, ROWS = "switch, program, ./router.json", "switch, entries, ./routes.txt"


@pytest.mark.parametrize(
    ("tuples", "place", "why"),
    [
        (["switch, program, ./none.json"], "6:23", "./none.json: can't be read: No such file or directory"),
        (["switch, program, ./other.json"], "6:23", "got another JSON, without parsers, pipelines or deparsers"),
        (["switch, program, ./broken.json"], "6:23", "want the JSON that p4c makes for BMv2, or P4; got"),
        (["switch, program, ./two_parsers.json"], "6:23", "another architecture than v1model, which has one parser"),
        (["switch, program, router"], "6:23", "want a path such as ./codel.p4, or a program as testctl writes it; got"),
        ([ROWS], "6:23", "switch, entries: want a program that they are of; got none"),
        ([OWN, "switch, entries, ./two_routes.txt"], "7:23", "two_routes.txt, line 2: table ingress.routes: want "),
        ([OWN, "switch, entries, ./broken_rows.json"], "7:23", "./broken_rows.json, line 2, column 4: want JSON;"),
        ([OWN, "switch, program, ./two_parsers.json"], "7:5", "switch switch, program: set twice, first at"),
        ([OWN, ROWS, "switch:receiver, ecn_threshold, 30kB"], "6:23", "want no ecn_threshold at switch:receiver"),
        ([OWN, "switch, backend, netem"], "6:23", "want the back end ebpf; got netem"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_is_made(where: Path, tuples: list[str], place: str, why: str) -> None:
    said = refusal(where, *tuples)
    assert said.startswith(f"plan.yaml:{place}: ")
    assert why in said


def test_a_testbed_without_such_programs_is_named(where: Path) -> None:
    assert "switch switch, program: testbed netns can't have it; these can: lab" in refusal(where, OWN, testbed="netns")


def test_p4_without_its_compiler(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(where))
    monkeypatch.delenv("TESTCTL_P4C", raising=False)
    why = "want p4c-bm2-ss on PATH or at $TESTCTL_P4C, or the JSON that it makes; got none"
    assert why in refusal(where, "switch, program, ./program.p4")


def test_another_program_or_other_rows_are_another_point(where: Path) -> None:
    (where / "none.txt").write_text("# no rows\n")
    lines = f"  - [{OWN}]\n  - [switch, entries, [./routes.txt, ./none.txt]]\n"
    (where / "plan.yaml").write_text(PLAN + lines)
    plan = load_plan(where / "plan.yaml", metrics={})
    assert len({point.id for point in plan.points}) == 2
    assert [level for point in plan.points for level in point.tuples if level[1] == "entries"]


def check(*words: str) -> tuple[int, str]:
    done = call(Path.cwd(), "p4", "check", *words, code=None)
    return done.returncode, done.stdout + done.stderr


def test_check_prints_tables_and_what_differs() -> None:
    code, text = check(str(PROGRAMS / "router.json"))
    assert code == 0
    assert text.splitlines() == [
        "table ingress.routes: hdr.ipv4.dst (lpm 32); at most 64 rows",
        "  ingress.discard()",
        "  ingress.to(mac: 48, port: 9)",
    ]
    code, text = check(str(PROGRAMS / "queue.json"), "--json")
    assert code == 0
    assert list(json.loads(text)["differs"]) == ["enq_qdepth", "deq_qdepth", "deq_timedelta"]
    assert "recirculate              at most eight times" in check(str(PROGRAMS / "again.json"))[1]
    assert "modify_field_rng_uniform random()" in check(str(PROGRAMS / "draws.json"))[1]


def test_check_refuses_what_a_plan_could_not_have(where: Path) -> None:
    assert check(str(where / "two_parsers.json"))[0] == 2
    assert check(str(where / "none.json")) == (2, f"{where}/none.json: can't be read: No such file or directory\n")
