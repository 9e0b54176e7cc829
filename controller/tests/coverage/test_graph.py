# SPDX-License-Identifier: Apache-2.0
"""Executions that follow from gcc's counters are those that gcov states."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from testctl.coverage.graph import executed
from testctl.coverage.notes import counters_of, functions_of
from testctl_agent.spec.errors import TestbedError

STATEMENTS = (
    "if (a % {n} == {m}) b += {n}; else if (b > a) b -= {m};",
    "for (int i{k} = 0; i{k} < a % {n}; i{k}++) {{ if (i{k} == {m}) continue; b += i{k}; }}",
    "switch (a % {n}) {{ case 0: b++; break; case 1: b += 2; case 2: b ^= a; break; default: b--; }}",
    "b = b > {n} && a > {m} ? inner(b) : a;",
    "while (b > {n}) {{ b /= 2; if (b == {m}) return a; }}",
    "if (b == {m}) goto out;",
)


def program(seed: int) -> str:
    drawn = random.Random(seed)
    body = "\n".join(
        drawn.choice(STATEMENTS).format(n=drawn.randint(2, 9), m=drawn.randint(0, 3), k=number) for number in range(9)
    )
    return f"""#include <stdlib.h>
static inline int inner(int x)
{{
	if (x & 1)
		return x - 1;
	return x + 1;
}}
static int outer(int a, int b)
{{
{body}
out:
	if (b > 1000)
		exit(3);
	return b;
}}
int main(void)
{{
	int sum = 0;
	for (int a = 0; a < {drawn.randint(1, 30)}; a++)
		sum += outer(a, sum % 7);
	return sum & 1;
}}
"""


@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
@pytest.mark.parametrize("seed", range(6))
def test_lines_and_branches_are_those_of_gcov(seed: int, optimised: str, tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(program(seed), encoding="ascii")
    subprocess.run(["gcc", optimised, "--coverage", "-o", "p", "p.c"], cwd=tmp_path, check=True)
    subprocess.run(["./p"], cwd=tmp_path, check=False)
    gcov = ["gcov", "--json-format", "--stdout", "--branch-probabilities", "p.gcda"]
    document = json.loads(subprocess.run(gcov, cwd=tmp_path, check=True, stdout=subprocess.PIPE).stdout)
    wanted = {
        line["line_number"]: (line["count"] > 0, sorted(branch["count"] for branch in line["branches"]))
        for file in document["files"]
        for line in file["lines"]
    }
    notes = functions_of((tmp_path / "p.gcno").read_bytes(), "p")
    counters = counters_of((tmp_path / "p.gcda").read_bytes(), "p")
    lines: dict[int, bool] = {}
    branches: dict[int, list[int]] = {}
    for function in notes:
        count = sum(arc.counted for arc in function.arcs)
        result = executed(function, np.array(counters.get(function.key, (0,) * count), np.int64)[:, None])
        assert (result.arcs >= 0).all()
        for block, places in function.lines.items():
            for _, line in places:
                lines[line] = lines.get(line, False) or bool(result.blocks[block].any())
            arcs = [index for index, arc in enumerate(function.arcs) if arc.source == block and not arc.fake]
            if len(arcs) > 1:
                branches.setdefault(places[-1][1], []).extend(int(result.arcs[index, 0]) for index in arcs)
    assert {line: (count, sorted(branches.get(line, []))) for line, count in lines.items()} == wanted


def test_a_file_that_is_cut_or_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(program(1), encoding="ascii")
    subprocess.run(["gcc", "--coverage", "-o", "p", "p.c"], cwd=tmp_path, check=True)
    subprocess.run(["./p"], cwd=tmp_path, check=False)
    for read, name in ((functions_of, "p.gcno"), (counters_of, "p.gcda")):
        data = (tmp_path / name).read_bytes()
        with pytest.raises(TestbedError, match="p: want a file of gcov"):
            read(b"\x7fELF" + data, "p")
        with pytest.raises(TestbedError, match=r"p: want gcc 12 or later; it was compiled by gcc 11"):
            read(data[:4] + b"*11B" + data[8:], "p")
        refused = 0
        for cut in range(len(data)):
            try:
                read(data[:cut], "p")
            except TestbedError as error:
                refused += str(error).startswith("p: byte ")
        assert refused > len(data) / 2
