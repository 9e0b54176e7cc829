# SPDX-License-Identifier: Apache-2.0
"""`allow`: rules of TCP that points of a plan may break, with the reason; and those that are broken all the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping

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


def broken_rules(metrics: Mapping[str, Mapping[str, float | str | None]], allowed: Collection[str]) -> dict[str, str]:
    """Rules that flows broke and that are not allowed, by the metrics that list them, with a sentence for each."""
    broken: dict[str, list[str]] = {}
    for flow, of in metrics.items():
        for rule, count in _listed(of).items():
            if rule not in allowed:
                first = str(of.get("first_violation")).replace("; ", ", ")
                example = f" ({first.removeprefix(f'{rule}: ')})" if first.startswith(f"{rule}: ") else ""
                times = f", {count} times" if count != "1" else ""
                broken.setdefault(rule, []).append(f"by {flow}{times}{example}")
    return {rule: f"the rule {rule} was broken {', '.join(flows)}" for rule, flows in broken.items()}


def breaks(metrics: Mapping[str, Mapping[str, float | str | None]], rule: str) -> bool:
    """Whether a flow broke it, allowed or not."""
    return any(rule in _listed(of) for of in metrics.values())


def _listed(of: Mapping[str, float | str | None]) -> dict[str, str]:
    """Rule -> number of violations, of a flow: its metric is such as "ack-moves-back 2, beyond-window 1"."""
    entries = (entry.partition(" ") for entry in str(of.get("rules_violated") or "").split(", "))
    return {rule: count for rule, _, count in entries if count}
