# SPDX-License-Identifier: Apache-2.0
"""`allow`: rules of TCP that points of a plan may break, with the reason."""

from __future__ import annotations

from collections.abc import Collection

from testctl.plan.conditions import Reader
from testctl.plan.diagnostics import show, suggest
from testctl.plan.field_tables import ALLOW
from testctl.plan.fields import Fields
from testctl.plan.model import Allowed
from testctl.plan.yaml_reader import Node, Sequence, what


def read_allowed(node: Node | None, reader: Reader, rules: Collection[str] | None) -> tuple[Allowed, ...]:
    """The entries of `allow`.  rules: the names that there are; None: any."""
    if node is None:
        return ()
    if not isinstance(node, Sequence):
        reader.problems.add(node.place, f"allow: want a list of {{rule: NAME, reason: TEXT}}; got {what(node)}")
        return ()
    allowed = []
    for item in node.items:
        fields = Fields(item, "allow", ALLOW, reader.problems)
        if not fields.ok:
            continue
        rule, reason = fields.text("rule"), fields.text("reason")
        if rules is not None and rule not in rules:
            hint = suggest(rule, rules) or "; `testctl rules` lists them"
            reader.problems.add(fields.nodes["rule"].place, f"allow: no rule named {show(rule)}{hint}")
        if not reason.strip():
            reader.problems.add(fields.nodes["reason"].place, f"allow {show(rule)}: want a reason; got none")
        when = reader.condition(fields.nodes["when"], f"allow {show(rule)}, when") if "when" in fields.nodes else {}
        if when is not None:
            allowed.append(Allowed(rule, reason, when))
    return tuple(allowed)
