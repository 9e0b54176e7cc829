# SPDX-License-Identifier: Apache-2.0
"""Where the kernel's C can be changed, and how: one function for each operator.

A site either wraps code (two insertions, and other sites may lie within), or replaces an expression by a choice of it
and its mutated form.  The functions testctl_… are in lab/kernel/variants/mutants_switch.h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from testctl.mutate.c_source import Source, text_of, walk

NUMBER = "@"
"""In the texts of a site: the number of its mutant."""


@dataclass(frozen=True)
class Site:
    """A place in a file and one way to change it.

    start, end   bytes of the file
    old, new     the code before and after, to be shown
    before, after   are put around the code; or:
    instead      what replaces it
    """

    file: str
    function: str
    line: int
    operator: str
    start: int
    end: int
    old: str
    new: str
    before: str = ""
    after: str = ""
    instead: str = ""


Change = tuple[Node, str, str, str, str]
"""The node, its mutated form to be shown, and before, after, instead of Site."""

_NOT_CHANGED = re.compile(
    r"(WARN|BUG|BUILD_BUG|DEBUG_NET|NET_WARN|pr_|printk|trace_|net_\w+_ratelimited|lockdep|static_assert|ASSERT|"
    r"__builtin|sizeof|offsetof|typeof|container_of|EXPORT_|LIST_HEAD|DEFINE_|DECLARE_|SKB_DR|sock_owned_by_me|"
    r"prefetch|bpf_skops|tcp_bpf)\w*"
)
"""Debugging, tracing and the compiler's own: neither these functions nor the arguments of their calls are changed."""
_NOT_REMOVED = re.compile(
    r"\w*(lock|rcu|free|preempt|barrier|smp_|refcount|sock_hold|sock_put|get_page|put_page|mem_charge|might_sleep)\w*"
)
"""Calls of locks and memory: a test of TCP sees nothing of them."""
_NOT_ENTERED = (
    "type_descriptor", "sizeof_expression", "attribute_specifier", "gnu_asm_expression", "offsetof_expression",
    "array_declarator", "enumerator", "bitfield_clause", "struct_specifier",
)  # fmt: skip
_EITHER_WAY = ("max", "max_t", "max3", "min", "min_t", "min3", "swap")
"""Calls whose arguments may stand in any order."""
_PURE = (
    "READ_ONCE", "TCP_SKB_CB", "after", "before", "between", "inet_csk", "inet_rsk", "inet_sk", "max", "max_t", "min",
    "min_t", "sock_net", "tcp_hdr", "tcp_packets_in_flight", "tcp_skb_mss", "tcp_skb_pcount", "tcp_sk", "tcp_snd_cwnd",
)  # fmt: skip
"""Calls without effects: the mutated form can be computed as well as the original."""

_RELATIONS: Mapping[str, tuple[str, ...]] = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
}  # fmt: skip
_SEQUENCE = {"before": "after", "after": "before"}
_UNITS: Mapping[str, str] = {
    "usecs_to_jiffies": "msecs_to_jiffies", "msecs_to_jiffies": "usecs_to_jiffies",
    "nsecs_to_jiffies": "usecs_to_jiffies",
    "jiffies_to_usecs": "jiffies_to_msecs", "jiffies_to_msecs": "jiffies_to_usecs",
    "ktime_to_us": "ktime_to_ms", "ktime_to_ms": "ktime_to_us", "ktime_to_ns": "ktime_to_us",
    "ms_to_ktime": "ns_to_ktime", "ns_to_ktime": "ms_to_ktime",
}  # fmt: skip
_TIME = re.compile(r"HZ|[NUM]SEC_PER_\w+|TCP_((RTO|DELACK)_(MIN|MAX)|ATO_MIN|TIMEOUT_\w+|RESOURCE_PROBE_INTERVAL)")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _pure(node: Node) -> bool:
    """Whether computing it has no effect."""
    for part in walk(node):
        if part.type in ("assignment_expression", "update_expression", "compound_statement"):
            return False
        if part.type == "call_expression" and text_of(part.child_by_field_name("function")) not in _PURE:
            return False
    return True


def _choice(node: Node, new: str) -> Change:
    old = _flat(text_of(node))
    same = f"testctl_is_if({NUMBER}, ({new}) != ({old}))" if _pure(node) else f"testctl_is({NUMBER})"
    return node, new, "", "", f"({same} ? ({new}) : ({old}))"


def relations(node: Node) -> Iterator[Change]:
    """< as <= and as >=, == as !=, before(a, b) as !after(a, b)."""
    if node.type == "binary_expression":
        left, sign, right = (_flat(text_of(node.child_by_field_name(n))) for n in ("left", "operator", "right"))
        for other in _RELATIONS.get(sign, ()):
            yield _choice(node, f"{left} {other} {right}")
    if node.type == "call_expression" and (name := text_of(node.child_by_field_name("function"))) in _SEQUENCE:
        yield _choice(node, f"!{_SEQUENCE[name]}{_flat(text_of(node.child_by_field_name('arguments')))}")


def constants(node: Node) -> Iterator[Change]:
    """An integer plus and minus one."""
    parent = node.parent
    if node.type == "number_literal" and not (parent and parent.type == "parenthesized_expression"):
        old = text_of(node)
        if not (number := re.fullmatch(r"(-?(?:0x[\da-f]+|0|[1-9]\d*))([ul]*)", old, re.IGNORECASE)):
            return
        value, form = int(number[1], 0), hex if "x" in old.lower() else str
        for new in (f"{form(value + 1)}{number[2]}", f"{form(value - 1)}{number[2]}"):
            yield node, new, "", "", f"(testctl_is({NUMBER}) ? {new} : {old})"


def conditions(node: Node) -> Iterator[Change]:
    """A condition negated."""
    if (condition := _condition(node)) is not None:
        yield condition, f"!({_flat(text_of(condition))})", f"testctl_not({NUMBER}, (", "))", ""


def fixed(node: Node) -> Iterator[Change]:
    """A condition that is always true or never; a loop only the latter, which ends."""
    if (condition := _condition(node)) is not None:
        for value in ("true", "false") if node.type in ("if_statement", "conditional_expression") else ("false",):
            yield condition, value, f"testctl_{value}({NUMBER}, (", "))", ""


def _condition(node: Node) -> Node | None:
    if node.type not in ("if_statement", "while_statement", "do_statement", "for_statement", "conditional_expression"):
        return None
    if node.type == "conditional_expression" and node.child_by_field_name("consequence") is None:
        return None  # a ?: b, whose value may be that of its condition
    condition = node.child_by_field_name("condition")
    if condition is not None and condition.type == "parenthesized_expression":
        condition = condition.named_child(0)
    return None if condition is None or condition.type in ("number_literal", "comment") else condition


def logic(node: Node) -> Iterator[Change]:
    """&& as ||, and the other way round.  The right side is computed only where C says so."""
    if node.type == "binary_expression":
        left, sign, right = (_flat(text_of(node.child_by_field_name(n))) for n in ("left", "operator", "right"))
        if sign in ("&&", "||"):
            other = "||" if sign == "&&" else "&&"
            yield (
                node,
                f"{left} {other} {right}",
                "",
                "",
                (f"(testctl_is({NUMBER}) ? ({left} {other} {right}) : ({left} {sign} {right}))"),
            )


def arithmetic(node: Node) -> Iterator[Change]:
    """+ as -, += as -=, ++ as --, and the other way round."""
    if node.type == "binary_expression":
        left, sign, right = (_flat(text_of(node.child_by_field_name(n))) for n in ("left", "operator", "right"))
        if sign in ("+", "-"):
            yield _choice(node, f"{left} {'-' if sign == '+' else '+'} {right}")
    if node.type in ("assignment_expression", "update_expression"):
        sign, old = text_of(node.child_by_field_name("operator")), _flat(text_of(node))
        if sign in ("+=", "-=", "++", "--"):
            yield _choice(node, old.replace(sign, sign.translate({43: "-", 45: "+"}), 1))


def removed(node: Node) -> Iterator[Change]:
    """A statement that is left out: an assignment, a call, a jump, a return without a value."""
    call = f"testctl_is({NUMBER})"
    if node.type == "expression_statement":
        expression = node.children[0]
        if expression.type not in ("assignment_expression", "update_expression", "call_expression"):
            return
        if _NOT_REMOVED.fullmatch(text_of(expression.child_by_field_name("function"))):
            return
        left, sign, right = (expression.child_by_field_name(name) for name in ("left", "operator", "right"))
        if left and right and left.type == "field_expression" and text_of(sign) == "=" and _pure(left) and _pure(right):
            call = f"testctl_is_if({NUMBER}, ({_flat(text_of(left))}) != ({_flat(text_of(right))}))"
    elif node.type not in ("goto_statement", "break_statement", "continue_statement") and not (
        node.type == "return_statement" and not node.named_child_count
    ):
        return
    yield node, "", f"{{ if (!{call}) ", " }", ""


def swapped(node: Node) -> Iterator[Change]:
    """Two arguments next to each other in the other order, where both are variables of the same type."""
    if node.type != "call_expression":
        return
    name, arguments = text_of(node.child_by_field_name("function")), node.child_by_field_name("arguments")
    items = list(arguments.named_children) if arguments is not None and name not in _EITHER_WAY else []
    types = [""] * len(items) if name not in _SEQUENCE else ["u32"] * len(items)
    if name not in _SEQUENCE and any(item.type == "identifier" for item in items):
        known = _declared(node)
        types = [known.get(text_of(item), "") if item.type == "identifier" else "" for item in items]
    for at in range(len(items) - 1):
        texts = [_flat(text_of(item)) for item in items]
        if types[at] and types[at] == types[at + 1] and texts[at] != texts[at + 1]:
            texts[at], texts[at + 1] = texts[at + 1], texts[at]
            yield _choice(node, f"{name}({', '.join(texts)})")


def _declared(node: Node) -> dict[str, str]:
    """The variables of the function around a node, with their types as written."""
    function, above = node, node.parent
    while above is not None:
        function, above = above if above.type == "function_definition" else function, above.parent
    types = {}
    for part in walk(function):
        if part.type in ("parameter_declaration", "declaration"):
            base = text_of(part.child_by_field_name("type"))
            for declarator in part.children_by_field_name("declarator"):
                if declarator.type == "init_declarator":
                    declarator = declarator.child_by_field_name("declarator") or declarator
                stars = re.match(r"[*\s]*", text_of(declarator))
                name = text_of(declarator).lstrip("* \t")
                types[name] = f"{base} {_flat(stars[0]) if stars else ''}"
    return types


def units(node: Node) -> Iterator[Change]:
    """A time in another unit: another conversion, a constant times 1000."""
    if node.type == "call_expression" and (name := text_of(node.child_by_field_name("function"))) in _UNITS:
        yield _choice(node, f"{_UNITS[name]}{_flat(text_of(node.child_by_field_name('arguments')))}")
    if node.type == "identifier" and _TIME.fullmatch(old := text_of(node)):
        yield node, f"{old} * 1000", "", "", f"(testctl_is({NUMBER}) ? {old} * 1000 : {old})"


OPERATORS: Mapping[str, Callable[[Node], Iterator[Change]]] = {
    "relation": relations, "constant": constants, "negated": conditions, "fixed": fixed, "logic": logic,
    "arithmetic": arithmetic, "removed": removed, "swapped": swapped, "unit": units,
}  # fmt: skip
"""By the word that tables have for it."""


def sites(source: Source) -> list[Site]:
    result = []
    for function, definition in source.functions():
        body = definition.child_by_field_name("body")
        for node in _changeable(body) if body is not None and not _NOT_CHANGED.fullmatch(function) else ():
            for operator, changes in OPERATORS.items():
                result += [_site(source, function, operator, change) for change in changes(node)]
    return [site for site in result if not site.instead or _as_parsed(source, site)]


def _as_parsed(source: Source, site: Site) -> bool:
    """Whether the parser had the code as it is, without a directive in it; nor has it a comment to a line's end."""
    text = source.text[site.start : site.end]
    return text == source.blanked[site.start : site.end] and b"//" not in text


def _site(source: Source, function: str, operator: str, change: Change) -> Site:
    node, new, before, after, instead = change
    line = node.start_point[0] + 1
    lines = "\n" * (node.end_point[0] - node.start_point[0])  # so that what follows stays in its line
    old = _flat(source.slice(node.start_byte, node.end_byte))
    return Site(
        source.name, function, line, operator, node.start_byte, node.end_byte, old, new, before, after,
        f"{instead}{lines}" if instead else "",
    )  # fmt: skip


def _changeable(node: Node) -> Iterator[Node]:
    """The nodes of a function's body that can be changed, without those that the parser could not read."""
    if node.is_error or node.type in _NOT_ENTERED:
        return
    call = node.child(0) if node.type == "expression_statement" else node
    if call is not None and _NOT_CHANGED.fullmatch(text_of(call.child_by_field_name("function"))):
        return
    if node.type == "declaration" and any(text_of(child) == "static" for child in node.children):
        return
    if node.type == "expression_statement" and node.children and node.children[-1].is_missing:
        return  # the head of a loop that a macro makes
    if not node.has_error:
        yield node
    label = node.child_by_field_name("value") if node.type == "case_statement" else None
    for child in node.children:
        if label is None or child.id != label.id:
            yield from _changeable(child)
