# SPDX-License-Identifier: Apache-2.0
"""Which sites are drawn, and files with mutants: only their bytes change, and lines keep their numbers."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.lab.source import find, tarball_of
from testctl.lab.tree_part import part_of
from testctl.mutate.c_source import Source
from testctl.mutate.draw import Mutant, draw, fit, rewritten
from testctl.mutate.operators import OPERATORS, Site, sites
from tree_sitter import Node

NAME = "net/ipv4/x.c"
TEXT = b"""static int f(struct sock *sk, u32 a, u32 b)
{
	int n = 0;

	if (a < b && sk->x)
		n = a + 1;
	else
		g(a, b,
			n);
	for (n = 0; n < 3; n++) {
		if (!g(b, a, n))
			continue;
		sk->x += usecs_to_jiffies(n);
	}
	return n ? 1 : HZ;
}
"""
EVERY = sites(Source(NAME, TEXT))


def apart() -> list[Site]:
    """The sites of many functions, of which most fit together."""
    return sites(Source(NAME, b"".join(TEXT.replace(b" f(", b" f%d(" % number) for number in range(50))))


def test_the_same_seed_draws_the_same() -> None:
    assert draw(EVERY, 10, 1) == draw(EVERY, 10, 1)
    assert draw(EVERY, 10, 1) != draw(EVERY, 10, 2)
    assert draw(EVERY, 10, 1)[:5] == draw(EVERY, 5, 1), "more of the same draw begin with the same"
    assert [mutant.number for mutant in draw(EVERY, 10, 1)] == list(range(1, 11))
    assert len(draw(EVERY, 8000, 1)) < len(EVERY), "only some can be in a kernel together"


def test_every_operator_is_drawn_as_often() -> None:
    counts = Counter(mutant.site.operator for mutant in draw(apart(), 18, 1))
    assert counts == dict.fromkeys(OPERATORS, 2)


@given(st.integers(0, 1000), st.integers(1, 60))
def test_drawn_sites_fit(seed: int, count: int) -> None:
    for one, other in combinations([mutant.site for mutant in draw(EVERY, count, seed)], 2):
        assert fit(one, other)
        assert fit(other, one)


@given(st.integers(0, 1000), st.integers(1, 60))
def test_without_the_switches_it_is_the_file(seed: int, count: int) -> None:
    mutants = draw(EVERY, count, seed)
    text = rewritten(NAME, TEXT, mutants).decode()
    head, _, text = text.partition("\n#line 1\n")
    assert head == '#include "testctl/mutants_switch.h"'
    for mutant in mutants:
        assert len(re.findall(rf"testctl_\w+\({mutant.number}\b", text)) == 1, mutant
    assert text.count("\n") == TEXT.count(b"\n")
    for mutant in sorted(mutants, key=lambda mutant: mutant.site.end - mutant.site.start):
        site, number = mutant.site, str(mutant.number)
        if site.instead:
            text = text.replace(site.instead.replace("@", number), TEXT[site.start : site.end].decode())
        before, after = site.before.replace("@", number), site.after
        if before:
            at = text.index(before)
            text = text[:at] + "".join(_balanced(text, at + len(before), after))
    assert text == TEXT.decode()


def _balanced(text: str, start: int, end: str) -> tuple[str, str]:
    """The code from `start` to the brackets that close it, and what follows them."""
    depth = 0
    for at in range(start, len(text)):
        if not depth and text.startswith(end, at):
            return text[start:at], text[at + len(end) :]
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(text[at], 0)
    raise AssertionError(text[start:])


def tcp_input() -> bytes:
    if tarball_of("6.12") is None:
        pytest.skip("linux-source-6.12 is not installed")
    part = part_of(find("6.12"), "net/ipv4")
    assert part is not None
    return (part / "tcp_input.c").read_bytes()


def unread(source: Source) -> int:
    """How many places the parser could not read."""

    def count(node: Node) -> int:
        return (node.is_error or node.is_missing) + sum(count(child) for child in node.children if node.has_error)

    return count(source.root)


@pytest.mark.long
def test_the_kernels_own_code_is_still_c() -> None:
    """As many mutants as fit: the parser reads all of them, and what it could not read before is the same."""
    name, text = "net/ipv4/tcp_input.c", tcp_input()
    source = Source(name, text)
    every = sites(source)
    assert len(every) > 5000
    assert {site.operator for site in every} == set(OPERATORS)
    mutants = draw(every, 8000, 1)
    assert len(mutants) > 3000
    assert unread(Source(name, rewritten(name, text, mutants))) == unread(source)
    changed = rewritten(name, text, mutants).partition(b"#line 1\n")[2]
    assert changed.count(b"\n") == text.count(b"\n")
    untouched = set(range(1, text.count(b"\n") + 1)) - {
        line
        for m in mutants
        for line in range(m.site.line, m.site.line + 1 + text.count(b"\n", m.site.start, m.site.end))
    }
    before, after = text.splitlines(), changed.splitlines()
    assert all(before[line - 1] == after[line - 1] for line in untouched)


def test_a_mutant_of_another_file_is_not_in_it() -> None:
    other = Site("net/core/y.c", "g", 1, "constant", 0, 1, "", "", instead="x")
    assert rewritten(NAME, b"int x;\n", [Mutant(1, other)]).endswith(b"#line 1\nint x;\n")
    assert rewritten("net/core/y.c", b"a", []).startswith(b'#include "../ipv4/testctl/mutants_switch.h"\n')
