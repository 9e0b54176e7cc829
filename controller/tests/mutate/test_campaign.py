# SPDX-License-Identifier: Apache-2.0
"""The directory of a run, the numbers of its tables, and what the command refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from testctl.cli.main import app
from testctl.mutate.campaign import Bench, begin, in_turn
from testctl.mutate.detect import Campaign, Record, most_changed
from testctl.mutate.draw import Mutant
from testctl.mutate.operators import Site
from testctl.mutate.report import print_report, rows, to_json
from testctl.mutate.trial import Ran
from testctl.plan import Measured
from testctl.testbeds.lab import LabTestbed
from testctl_agent.spec.errors import PlanError, TestbedError
from typer.testing import CliRunner

HEAD = {"plan": ["x 1"], "seed": 1}


def test_a_run_is_resumed_only_by_the_same_run(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is none at"):
        begin(tmp_path / "run", HEAD, resume=True)
    begin(tmp_path / "run", HEAD, resume=False)
    begin(tmp_path / "run", HEAD, resume=True)
    with pytest.raises(PlanError, match="go on with --resume"):
        begin(tmp_path / "run", HEAD, resume=False)
    with pytest.raises(PlanError, match=r"another seed, 1; got 2"):
        begin(tmp_path / "run", HEAD | {"seed": 2}, resume=True)
    (tmp_path / "run" / "run.json").write_text("[1", encoding="utf-8")
    with pytest.raises(PlanError, match=r"run\.json: can't read it"):
        begin(tmp_path / "run", HEAD, resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(PlanError, match="something in it"):
        begin(tmp_path / "other", HEAD, resume=False)
    with pytest.raises(TestbedError, match="nothing was run"):
        begin(tmp_path / "other" / "file" / "x", HEAD, resume=False)


def test_seen_has_two_bits_for_each_mutant() -> None:
    ran = Ran(Measured("pass"), "", 1.0, "", 0, "1c02")
    assert [number for number in range(1, 20) if ran.reaches(number)] == [1, 4]
    assert [number for number in range(1, 20) if ran.differs(number)] == [4, 7]
    again = Ran.from_json(json.loads(json.dumps(ran.to_json())))
    assert again == ran


def test_each_plan_has_its_turn_among_the_points() -> None:
    best = [(0, "a"), (0, "b"), (0, "c"), (1, "d"), (0, "e"), (2, "f"), (1, "g")]
    assert "".join(point for _, point in in_turn(best)) == "abdcfeg"
    assert in_turn(best[:3]) == best[:3]
    assert in_turn([]) == []


def mutant(number: int, operator: str = "constant") -> Mutant:
    file = "net/ipv4/tcp_minisocks.c"
    return Mutant(number, Site(file, "f", number, operator, number, number + 1, f"old{number}", f"new{number}"))


MUTANTS = [mutant(number) for number in range(1, 9)]
RECORDS = {
    1: Record(1, {"rule": (0, "p", "broke"), "expectation": (0, "p", "failed")}, [(0, "p", "")], [(0, "p")], 3, 2),
    2: Record(2, {"crash": (0, "p", "hung")}, tried=[(0, "p")], reached=1, different=1),
    3: Record(3, differ=[(0, "p", "bulk loss 1 → 2")], tried=[(0, "p"), (0, "q")], reached=2, different=2),
    4: Record(4, tried=[(0, "p")], reached=2, different=2),
    5: Record(5, reached=2),
    6: Record(6),
}


def test_a_table_counts_each_way_of_detection() -> None:
    all_ = rows(MUTANTS, [7], RECORDS, lambda mutant: mutant.site.operator)["all"]
    assert all_ == {"drawn": 7, "no program": 1, "reached": 5, "expectation": 1, "rule": 1, "crash": 1, "invalid": 0,
                    "digest only": 1, "survived": 2}  # fmt: skip
    document = to_json(MUTANTS, [7], RECORDS, ["plan"])
    verdicts = [entry["verdict"] for entry in document["mutants"]]
    assert verdicts == ["expectation", "crash", "digest only", "survived", "survived", "not reached", "no program",
                        "not tried"]  # fmt: skip
    assert json.loads(json.dumps(document))["files"].keys() == {"net/ipv4/tcp_minisocks.c", "all"}


def test_the_report_fits_80_columns() -> None:
    console = Console(file=io.StringIO(), width=80)
    print_report(MUTANTS, [7], RECORDS, ["plan"], console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "tcp_minisocks.c     7        1       5      1    1     1       0       1       2" in text
    assert "net/ipv4/tcp_minisocks.c:3 f(), constant, mutant 3: digest only" in text
    assert "  old3  →  new3\n  other packets at 1 point, as p of plan: bulk loss 1 → 2\n" in text
    assert "  the same packets at 1 of 2 points where a value differs\n" in text
    assert "  the same value at 2 points\n" in text
    assert "5 mutants reached, 2 detected" in text
    assert "1 mutant not tried" in text


def test_the_metric_that_changed_most() -> None:
    before = Measured("pass", "", {"bulk": {"a": 10, "b": 1.0, "c": None, "d": "x"}})
    after = Measured("pass", "", {"bulk": {"a": 11, "b": 4.0, "c": 3, "d": "y"}})
    assert most_changed(before, after) == "bulk b 1 → 4"
    assert most_changed(before, before) == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "-1h"], "--budget: want a time such as 90s, 30m or 2h; got '-1h'"),
        (["--lines", "net/ipv4/tcp_input.c"], "--lines: want FILE:FIRST-LAST"),
        (["--lines", "net/ipv4/tcp_input.c:9-3"], "--lines: want FILE:FIRST-LAST"),
        (["--source", "nowhere"], "nowhere is not a kernel tree"),
        (["--source", "tree", "--files", "net/ipv4/none.c"], "file net/ipv4/none.c: want a C file of"),
        (["--source", "tree", "--files", "net/ipv4/empty.c"], "net/ipv4/empty.c: want code that can be changed"),
        (["--source", "tree", "--lines", "net/ipv4/x.c:1-1"], "net/ipv4/x.c:1-1: want code that can be changed"),
        (["--source", "tree", "--files", "net/ipv4/x.c", "--resume"], "there is none at"),
    ],
)
def test_bad_input(words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text("topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, bytes, 10kB]]\n")
    for name, text in (("empty.c", "int x;\n"), ("x.c", "int f(void)\n{\n\treturn 1 + 2;\n}\n")):
        Path("tree/net/ipv4").mkdir(parents=True, exist_ok=True)
        Path("tree/arch/um").mkdir(parents=True, exist_ok=True)
        Path("tree/net/ipv4", name).write_text(text)
    before = sorted(tmp_path.rglob("*"))
    done = CliRunner().invoke(app, ["mutate", "plan.yaml", *words])
    assert message in f"{done.output}{done.exception}"
    assert sorted(tmp_path.rglob("*")) == before, "nothing is half done"


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"plan": 0, "point": "a", "ran": {}}'])
def test_a_run_whose_files_are_damaged_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "points.jsonl").write_text(f"{line}\n", encoding="utf-8")
    bench = Bench(Campaign(LabTestbed({}, ""), []), [], [], tmp_path, 1, 1, 0.0, print)
    with pytest.raises(PlanError, match=r"--resume: .*: want points\.jsonl and mutants\.jsonl as testctl mutate wrote"):
        bench.run()
