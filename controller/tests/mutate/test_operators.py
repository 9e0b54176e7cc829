# SPDX-License-Identifier: Apache-2.0
"""What each operator makes of C, and what is left alone."""

from __future__ import annotations

import pytest
from testctl.mutate.c_source import Source
from testctl.mutate.operators import OPERATORS, Site, sites


def of(body: str, operator: str = "", head: str = "static void f(struct sock *sk, u32 a, u32 b, int n)") -> list[Site]:
    """The sites of an operator in a function."""
    every = sites(Source("net/ipv4/x.c", f"{head}\n{{\n{body}\n}}\n".encode()))
    return [site for site in every if operator in ("", site.operator)]


EXAMPLES = [
    ("relation", "if (a < b) g();", "a < b", ["a <= b", "a >= b"]),
    ("relation", "x = a == b;", "a == b", ["a != b"]),
    ("relation", "if (before(a, b)) g();", "before(a, b)", ["!after(a, b)"]),
    ("relation", "if (after(a, b)) g();", "after(a, b)", ["!before(a, b)"]),
    ("constant", "x = 7;", "7", ["8", "6"]),
    ("constant", "x = 0x10UL;", "0x10UL", ["0x11UL", "0xfUL"]),
    ("constant", "return -1;", "-1", ["0", "-2"]),
    ("negated", "if (likely(a)) g();", "likely(a)", ["!(likely(a))"]),
    ("negated", "while (a) g();", "a", ["!(a)"]),
    ("fixed", "if (a) g();", "a", ["true", "false"]),
    ("fixed", "for (i = 0; i < n; i++) g();", "i < n", ["false"]),
    ("fixed", "x = a ? b : n;", "a", ["true", "false"]),
    ("logic", "if (a && b) g();", "a && b", ["a || b"]),
    ("logic", "x = a || b;", "a || b", ["a && b"]),
    ("arithmetic", "x = a + b;", "a + b", ["a - b"]),
    ("arithmetic", "x -= a;", "x -= a", ["x += a"]),
    ("arithmetic", "n++;", "n++", ["n--"]),
    ("removed", "sk->x = a;", "sk->x = a;", [""]),
    ("removed", "g(sk);", "g(sk);", [""]),
    ("removed", "return;", "return;", [""]),
    ("removed", "for (;;) break;", "break;", [""]),
    ("swapped", "g(a, b);", "g(a, b)", ["g(b, a)"]),
    ("swapped", "g(a, b, 1);", "g(a, b, 1)", ["g(b, a, 1)"]),
    ("swapped", "x = before(sk->a, sk->b);", "before(sk->a, sk->b)", ["before(sk->b, sk->a)"]),
    ("unit", "x = usecs_to_jiffies(a);", "usecs_to_jiffies(a)", ["msecs_to_jiffies(a)"]),
    ("unit", "x = 3 * HZ;", "HZ", ["HZ * 1000"]),
    ("unit", "x = TCP_RTO_MIN;", "TCP_RTO_MIN", ["TCP_RTO_MIN * 1000"]),
]


@pytest.mark.parametrize(("operator", "body", "old", "new"), EXAMPLES)
def test_each(operator: str, body: str, old: str, new: list[str]) -> None:
    found = of(body, operator)
    assert [(site.old, site.new) for site in found] == [(old, text) for text in new]
    assert {site.line for site in found} == {3}
    assert {site.function for site in found} == {"f"}


def test_every_operator_has_an_example() -> None:
    assert {operator for operator, *_ in EXAMPLES} == set(OPERATORS)


@pytest.mark.parametrize(
    "body",
    [
        "return a;",
        "WARN_ON(a < 1 && b);",
        "pr_debug(\"%d\", a + 1);",
        "BUILD_BUG_ON(sizeof(a) != 4);",
        "trace_tcp_probe(sk, a + b);",
        "LIST_HEAD(list);",
        "static int x = 3;",
        "return sizeof(struct sock[3]);",
        "int list[4];",
        "#define X (a < b)",
        "#if X > 3\n#endif",
        "#ifdef X\n#else\ng(a + 1);\n#endif",
        "/* a < b */",
        "hlist_for_each_entry(a, b, n) { }",
    ],
)  # fmt: skip
def test_left_alone(body: str) -> None:
    assert not of(body)


def test_what_is_not_changed_within() -> None:
    assert not of("switch (a) { case 3 + 1: break; }", "arithmetic")
    assert not of("spin_lock(&sk->lock);", "removed")
    assert not of("x = max(a, b);", "swapped")
    assert not of("g(sk, a);", "swapped"), "another type"
    assert not of("g(a, a);", "swapped")
    assert not of("a = 1;", "removed", "void bpf_skops_established(struct sock *sk, u32 a)")
    assert not of("x = a ?: b;", "negated"), "its value is that of the condition"
    assert not of("do { g(); } while (0);", "fixed"), "a constant"
    assert not of("x = a +\n#ifdef X\n 1 +\n#endif\n b;", "arithmetic"), "a directive in it"


def test_a_value_that_may_differ_is_compared_only_without_effects() -> None:
    assert "testctl_is_if(@, (a <= b) != (a < b))" in of("x = a < b;", "relation")[0].instead
    assert "testctl_is(@)" in of("x = g() < b;", "relation")[0].instead
    assert "testctl_is(@)" in of("x = n++ < b;", "relation")[0].instead
    assert "testctl_is_if(@, (sk->x) != (a))" in of("sk->x = a;", "removed")[0].before
    assert "testctl_is(@)" in of("sk->x = g();", "removed")[0].before
    assert "testctl_is(@)" in of("x = a;", "removed")[0].before, "a local variable may have no value yet"


def test_functions_are_found_below_macros() -> None:
    text = b"""
INDIRECT_CALLABLE_DECLARE(int f(int));
static __always_inline bool __cold one(const struct sock *sk)
{
	skb_rbtree_walk(skb, &sk->queue) {
		if (skb->len < 3)
			return true;
	}
	return false;
}
EXPORT_SYMBOL(one);
struct sk_buff *two(struct sock *sk, int n) { n += 1; return NULL; }
"""
    found = {site.function for site in sites(Source("x.c", text))}
    assert found == {"one", "two"}
