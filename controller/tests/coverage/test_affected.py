# SPDX-License-Identifier: Apache-2.0
"""Which points a change concerns, by gcc's counters of a program's executions and git's differences of its text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from testctl.cli.affected import _print
from testctl.coverage.affected import Affected, Change, affected, most_different
from testctl.coverage.notes import Function, counters_of, functions_of
from testctl.coverage.table import Coverage, SourceFile, add_function
from testctl.lab import git_tree
from testctl.lab.source import split_revision
from testctl.plan import load_plan

NAME = "net/ipv4/tcp_p.c"
SOURCE = """#include <stdlib.h>

#define LIMIT 2

struct ops {
	int (*f)(int n);
};

/* Only for more. */
static int more(int n)
{
	int twice = 2 * n;

	return twice;
}

static int chosen(int n)
{
	if (n > LIMIT &&
			n < 100) {
		n = more(n);
		if (n > 7)
			n--;
	}
	return n;
}

int main(int argc, char **argv)
{
	return chosen(argc) == 2;
}
"""
RUNS = (["a"], ["a", "b"], ["a", "b", "c"])
"""Points: 0 never calls more(), 1 and 2 do, and 2 alone has n-- executed."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("tree")
    (where / NAME).parent.mkdir(parents=True)
    (where / NAME).write_text(SOURCE, encoding="ascii")
    for argv in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", *argv], cwd=where, check=True)
    return where


@pytest.fixture(scope="module")
def counted(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Coverage:
    where = tmp_path_factory.mktemp("built")
    (where / NAME).parent.mkdir(parents=True)
    (where / NAME).write_text(SOURCE, encoding="ascii")
    stem = NAME.removesuffix(".c")
    subprocess.run(["gcc", "--coverage", "-c", NAME, "-o", f"{stem}.o"], cwd=where, check=True)
    subprocess.run(["gcc", "--coverage", f"{stem}.o", "-o", "p"], cwd=where, check=True)
    counters = []
    for words in RUNS:
        subprocess.run(["./p", *words], cwd=where, check=False)
        counters.append(counters_of((data := where / f"{stem}.gcda").read_bytes(), NAME))
        data.unlink()
    files: dict[str, SourceFile] = {}
    function: Function
    for function in functions_of((where / f"{stem}.gcno").read_bytes(), NAME):
        add_function(files, function, np.array([of_point[function.key] for of_point in counters], np.int64).T)
    return Coverage("9.9", ["0", "1", "2"], files, where)


def changed(tree: Path, counted: Coverage, *edits: tuple[str, str], name: str = NAME) -> Affected:
    """What edits of the checkout concern."""
    text = SOURCE
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    try:
        (tree / NAME).write_text(text, encoding="ascii")
        head = git_tree.commit_id(tree, "HEAD")
        assert git_tree.changed(tree, head, "") == ([NAME] if edits else [])
        diff = git_tree.difference(tree, head, "", NAME)
        return affected(counted, {name: Change(git_tree.text(tree, head, NAME), text, diff)})
    finally:
        (tree / NAME).write_text(SOURCE, encoding="ascii")


@pytest.mark.parametrize(
    ("edits", "points"),
    [
        ([("n--;", "n -= 2;")], [2]),
        ([("\tif (n > LIMIT &&", "\tif (n >= LIMIT &&")], [0, 1, 2]),
        ([("n = more(n);", "n = more(n + 1);")], [1, 2]),
        ([("n < 100", "n < 90")], [0, 1, 2]),  # gcc counts the whole condition at its lines
        ([("int twice = 2 * n;\n", "int twice = 2 * n, unused;\n")], [1, 2]),
        ([("\t\t\tn--;\n", "")], [2]),
        ([("\t\tn = more(n);\n", "\t\tn = more(n);\n\t\tn++;\n")], [1, 2]),  # put in
        ([("\treturn twice;\n", "\tif (twice > 3)\n\t\ttwice = 3;\n\treturn twice;\n")], [1, 2]),
        ([("/* Only for more. */", "/* For\n more. */")], []),
        ([("return n;", "return  n; // the result")], []),
        ([("#define LIMIT 2", "#define LIMIT 3")], [0, 1, 2]),  # concerns functions
        ([("static int chosen", "static int less(int n)\n{\n\treturn n - 1;\n}\n\nstatic int chosen")], []),
        ([("\tint (*f)(int n);\n", "\tint (*f)(int n);\n\tint other;\n")], [0, 1, 2]),  # inside of a structure
        ([("n--;", "n -= 2;"), ("int twice = 2", "int twice = 3")], [1, 2]),
    ],
)  # fmt: skip
def test_points(tree: Path, counted: Coverage, edits: list[tuple[str, str]], points: list[int]) -> None:
    result = changed(tree, counted, *edits)
    assert np.flatnonzero(result.executions).tolist() == points
    assert (result.why_all, result.unreached, result.not_built) == ([], [], [])


def test_the_points_that_differ_most_come_first(tree: Path, counted: Coverage) -> None:
    """A point that executes what one before it does comes behind all that bring something else."""
    result = changed(tree, counted, ("n < 100", "n < 90"))
    head = SOURCE.splitlines().index("static int chosen(int n)") + 1
    assert [(name, first) for name, first, _ in result.functions] == [(NAME, head)]
    for among in ([1, 1, 2, 0], [0, 0, 0, 2, 1], [2, 2, 0, 1, 1]):
        for concerned in (result, Affected(np.ones(3, np.int64), why_all=["a header"])):
            assert sorted(most_different(counted, concerned, among, 3)) == [0, 1, 2]
    assert len(most_different(counted, result, [0, 1, 2], 2)) == 2


def test_lines_that_no_point_executes_are_named(tree: Path, counted: Coverage) -> None:
    files = {NAME: SourceFile(NAME, dict(counted.files[NAME].lines), {}, {}, dict(counted.files[NAME].ends))}
    number = SOURCE.splitlines().index("\t\t\tn--;") + 1
    files[NAME].lines[number] = np.zeros(3, np.int64)
    result = changed(tree, Coverage("9.9", counted.points, files, counted.sources), ("n--;", "n -= 2;"))
    assert not result.executions.any()
    assert result.unreached == [f"{NAME}:{number}: n--;"]


def test_files_of_which_no_lines_are_counted(tree: Path, counted: Coverage) -> None:
    edit = ("n--;", "n -= 2;")
    assert changed(tree, counted, edit, name="net/ipv4/ip_output.c").why_all == [
        "net/ipv4/ip_output.c has no lines that are counted"
    ]
    assert changed(tree, counted, ("/* Only for more. */", ""), name="net/ipv4/ip_output.c").why_all == []
    assert changed(tree, counted, edit, name="net/ipv4/tcp_other.c").not_built == ["net/ipv4/tcp_other.c"]
    assert len(changed(tree, counted, edit, name="include/linux/skbuff.h").why_all) == 1
    others = affected(counted, {"Documentation/a.rst": None, "net/ipv4/Kconfig": None, "scripts/Makefile.lib": None})
    assert others.not_built == ["Documentation/a.rst"]
    assert [why.split()[0] for why in others.why_all] == ["net/ipv4/Kconfig", "scripts/Makefile.lib"]


def test_the_tree_s_own_settings_of_git_change_nothing(tree: Path) -> None:
    head = git_tree.commit_id(tree, "HEAD")
    (tree / NAME).write_text(SOURCE.replace("n--", "--n"), encoding="ascii")
    try:
        plain = git_tree.difference(tree, head, "", NAME)
        settings = (
            ("diff.noprefix", "true"),
            ("color.diff", "always"),
            ("diff.external", "false"),
            ("diff.context", "9"),
        )
        for setting in settings:
            subprocess.run(["git", "config", *setting], cwd=tree, check=True)
        assert git_tree.difference(*(tree, head, "", NAME)).count("\n@@") == plain.count("\n@@") == 1
    finally:
        (tree / NAME).write_text(SOURCE, encoding="ascii")
    assert split_revision(f"{tree}@{head}") == (tree, head)


def test_lines_that_changed_and_no_point_executes_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, [cubic, reno]], [bulk, bytes, 1]]\n"
    )
    plan, counts = load_plan(tmp_path / "plan.yaml", metrics={}), np.zeros(2, np.int64)
    head = "1 of 2 points execute what changed since HEAD"
    for concerned, printed in (
        (Affected(counts), [head]),
        (
            Affected(counts, unreached=[f"{NAME}:7: a;", f"{NAME}:9: b;"], not_built=["net/sctp/input.c"]),
            [head, "not part of this kernel: net/sctp/input.c", "2 lines of the change that no point executes:",
             f"  {NAME}:7: a;", f"  {NAME}:9: b;"],
        ),
        (Affected(counts, why_all=["Kconfig"]), ["every point can be concerned by what changed since HEAD: Kconfig"]),
    ):  # fmt: skip
        _print(plan, "HEAD", concerned, 1, 0)
        assert capsys.readouterr().err.splitlines() == printed
    _print(plan, "HEAD", Affected(counts), 1, 3)
    assert "3 more are run because they are compared with these" in capsys.readouterr().err
