# SPDX-License-Identifier: Apache-2.0
"""Which mutants a compiler's errors are about, and what a tree must have."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab.source import KernelSource
from testctl.mutate.build import not_compiled, read
from testctl.mutate.c_source import Source
from testctl.mutate.draw import Mutant
from testctl.mutate.operators import sites
from testctl_agent.spec.errors import PlanError

NAME = "net/ipv4/x.c"
TEXT = b"""static int f(u32 a, u32 b)
{
	if (a < b)
		g(a + 1);
	charge(a);
	return a - b;
}
"""
MUTANTS = [Mutant(number, site) for number, site in enumerate(sites(Source(NAME, TEXT)), 1)]
ERROR = """
  CC      net/ipv4/x.o
../source/net/ipv4/y.c:4:7: error: of another file
{}
make[4]: *** [../source/scripts/Makefile.build:1: net/ipv4/x.o] Error 1
"""


def operators(log: str) -> set[tuple[int, str]]:
    return {(mutant.site.line, mutant.site.operator) for mutant in not_compiled(log, MUTANTS, {NAME: TEXT})}


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("../source/net/ipv4/x.c:6:9: error: 'a' is wrong", {(6, "arithmetic")}),
        ("/home/me/source/net/ipv4/x.c:4:3: error: what", {(4, "arithmetic"), (4, "constant")}),
        ("net/ipv4/x.c:5:2: error: what", {(5, "removed")}),
        ("../source/include/linux/a.h:9:2: error: static assertion\n"
         "../source/net/ipv4/x.c:6:4: note: in expansion of macro 'min'", {(6, "arithmetic")}),
        ("net/ipv4/x.c:6:9: warning: no error\nnet/ipv4/x.c:6:9: note: nor this", set()),
        ("ld: net/ipv4/x.o: in function `f':\nx.c:(.text+0x3e): undefined reference to `charge'",
         {(mutant.site.line, mutant.site.operator) for mutant in MUTANTS}),
        ("x.c:(.text+0x3e): undefined reference to `other'", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_errors_have_their_mutants(lines: str, wrong: set[tuple[int, str]]) -> None:
    assert operators(ERROR.format(lines)) == wrong


def test_a_file_that_can_not_be_changed(tmp_path: Path) -> None:
    for name in ("net/ipv4/x.c", "net/sched/sch_pie.c", "Makefile", "other/y.c"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(TEXT)
    source = KernelSource("x", tmp_path / "tree")
    assert read(source, [NAME]) == {NAME: TEXT}
    for name, text in (
        ("net/ipv4/none.c", "net/ipv4/none.c: want a C file of"),
        ("Makefile", "want a C file"),
        ("../tree/net/ipv4/x.c", "want a C file"),
        ("net/sched/sch_pie.c", "does not change"),
    ):
        with pytest.raises(PlanError, match=text):
            read(source, [name])
