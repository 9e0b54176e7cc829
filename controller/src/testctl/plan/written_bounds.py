# SPDX-License-Identifier: Apache-2.0
"""The bounds of the expectations of a plan that a run kept, in a few characters: "≥ 0.9".

Only the text is read: the plan was checked before it ran, perhaps by another version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testctl.core.temporal import SIGNALS
from testctl.core.units import show_metric
from testctl.plan.field_tables import RATIOS
from testctl.plan.sweep_figures import FLOW
from testctl.plan.temporal import MODES, WINDOW
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, Scalar, Sequence, parse

_SIGNS = {"min": "≥", "max": "≤", "at_least": "≥", "at_most": "≤"}


@dataclass(frozen=True)
class Written:
    """The bound of an expectation; low, high: whether a value can be below it, above it."""

    text: str = ""
    flows: tuple[str, ...] = ()
    low: bool = False
    high: bool = False

    @property
    def one_sided(self) -> bool:
        """Whether only values on one side of it are wrong."""
        return self.low != self.high


def written_bounds(plan_text: str, file: str) -> Mapping[str, Written]:
    """{name of an expectation: its bound}.  Raises PlanError."""
    root = parse(plan_text, file) if plan_text.strip() else None
    node = root.get("expect") if isinstance(root, MappingNode) else None
    items = node.items if isinstance(node, Sequence) else ()
    return dict(_written(item, number) for number, item in enumerate(items, start=1) if isinstance(item, MappingNode))


def _written(item: MappingNode, number: int) -> tuple[str, Written]:
    texts = {key.text: node.text for key, node in item.entries if isinstance(node, Scalar)}
    fails = texts.get("fails_with", "")
    mode = next((mode for mode in MODES if mode in texts), "")
    metric = SIGNALS[texts[mode]].suffix if texts.get(mode) in SIGNALS else texts.get("metric", "")
    what = f"fails with {fails}" if fails else f"{mode} {texts[mode]}" if mode else metric
    name = texts.get("name", f"{what} {number}")
    parts = [f"{sign} {_value(metric, key, texts[key])}" for key, sign in _SIGNS.items() if key in texts]
    if "equals" in texts or fails:
        parts.append(f"= {fails or _value(metric, 'equals', texts['equals'])}")
    if "tolerance" in texts:
        parts.append(f"± {texts['tolerance']}")
    text = " and ".join(parts) if "tolerance" not in texts else " ".join(parts)
    if than := _than(item.get("than")):
        text += f" times that {than}"
    if mode:
        text = f"{what} {text}" + "".join(f", {word} {_text(item.get(word))}" for word in WINDOW if item.get(word))
    low, high = (any(key in texts for key in keys) for keys in (("min", "at_least"), ("max", "at_most")))
    return name, Written(text, _flows(item.get("flow")), low, high)


def _value(metric: str, key: str, text: str) -> str:
    """With the metric's unit where the plan has a bare number."""
    try:
        return text if key in RATIOS else show_metric(metric, float(text))
    except ValueError:
        return text


def _text(node: Node | None) -> str:
    if isinstance(node, MappingNode):
        return ", ".join(f"{key.text} is {_text(value)}" for key, value in node.entries)
    return " or ".join(_flows(node))


def _than(node: Node | None) -> str:
    entries = node.entries if isinstance(node, MappingNode) else ()
    values = {key.text: value.text for key, value in entries if isinstance(value, Scalar)}
    beside = f"of {values.pop(FLOW)}" if FLOW in values else ""
    return " ".join(filter(None, [beside, "with " * bool(values) + ", ".join(f"{k}={v}" for k, v in values.items())]))


def _flows(node: Node | None) -> tuple[str, ...]:
    if isinstance(node, Scalar):
        return (node.text,)
    return tuple(item.text for item in node.items if isinstance(item, Scalar)) if isinstance(node, Sequence) else ()
