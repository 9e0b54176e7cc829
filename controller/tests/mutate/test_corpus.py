# SPDX-License-Identifier: Apache-2.0
"""Files of known bugs: what is refused, with its place, and the edits that they become."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.cli.main import app
from testctl.mutate.corpus import load_bug, mutants_of
from testctl.mutate.draw import rewritten
from testctl_agent.spec.errors import PlanError
from typer.testing import CliRunner

NAME = "net/ipv4/tcp_p.c"
TEXT = b"int f(int n)\n{\n\tif (n > 2)\n\t\treturn n;\n\treturn 0;\n}\n"
BUG = """bug: It returned too much
source: 'Linux 9.9, "tcp: return less"'
since: "4.6"
fixed: "9.9"
edits:
  - file: net/ipv4/tcp_p.c
    find: |-
      \tif (n > 2)
    replace: |-
      \tif (BUG || n > 2)
plan:
  topology: pair
  flows: {bulk: sender -> receiver}
  tuples: [[bulk, bytes, 1kB]]
  expect: [{name: it arrives, metric: payload_bytes, equals: 1000}]
"""


def written(where: Path, text: str = BUG, name: str = "one") -> Path:
    file = where / f"{name}.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_an_edit_stands_behind_the_bug_s_switch(tmp_path: Path) -> None:
    other = BUG.replace("if (n > 2)", "return 0;").replace("if (BUG || n > 2)", "return BUG + BUGS;")
    bugs = [load_bug(written(tmp_path), "6.12"), load_bug(written(tmp_path, other, "two"), "6.12")]
    assert (bugs[0].name, bugs[0].since, bugs[0].fixed) == ("one", "4.6", "9.9")
    assert {str(value) for _, name, value in bugs[0].plan.points[0].tuples if name == "kernel"} == {"6.12"}
    text = rewritten(NAME, TEXT, mutants_of(bugs, {NAME: TEXT})).decode()
    assert "\tif (testctl_is(1) || n > 2)\n\t\treturn n;\n\treturn testctl_is(2) + BUGS;\n" in text


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("bug: It returned too much\n", "", "one.yaml:1:1: want a field bug; got none"),
        ("since:", "sinse:", "no field named"),
        ("BUG || ", "", "one.yaml:9:14: edits: replace: want BUG in it"),
        ("    find: |-\n      \tif (n > 2)\n", "", "edits: want a field find; got none"),
        ("edits:", "edits: []\nother:", "edits: want a list of file, find and replace"),
        ("bytes, 1kB", "bites, 1kB", "one.yaml:14:"),
        ("bug: It", "bug: a: It", "not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, old: str, new: str, error: str) -> None:
    assert BUG.count(old) == 1
    file = written(tmp_path, BUG.replace(old, new))
    with pytest.raises(PlanError) as raised:
        load_bug(file, "6.12")
    assert error in str(raised.value)
    assert str(file) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (TEXT.replace(b"n > 2", b"n > 3"), "net/ipv4/tcp_p.c: want the text once; got it 0 times: if (n > 2)"),
        (TEXT + TEXT, "want the text once; got it 2 times"),
        (TEXT, "net/ipv4/tcp_p.c:3: want a text that no other edit has; one has it"),
    ],
)
def test_a_text_is_there_once_and_belongs_to_one_bug(tmp_path: Path, text: bytes, error: str) -> None:
    bugs = [load_bug(written(tmp_path, name=name), "6.12") for name in ("one", "two")]
    with pytest.raises(PlanError, match=error.replace("(", r"\(").replace(")", r"\)")):
        mutants_of(bugs, {NAME: text})


def test_the_command_wants_bugs_that_are_there(tmp_path: Path) -> None:
    written(tmp_path)
    for words, error in (
        (["two", "--directory", str(tmp_path)], f"want bugs of {tmp_path}: one; got two"),
        (["--directory", str(tmp_path / "none")], f"want files of bugs in {tmp_path / 'none'}; got none"),
    ):
        result = CliRunner().invoke(app, ["corpus", *words])
        assert isinstance(result.exception, PlanError)
        assert error in str(result.exception)
