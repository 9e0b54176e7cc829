# SPDX-License-Identifier: Apache-2.0
"""Numbers and quantities of expectations."""

from __future__ import annotations

import math
import re

from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Bytes, Duration, Quantity, Rate

from testctl.plan.hints import value_meant
from testctl.plan.model import Number
from testctl.plan.yaml_reader import Node, Scalar, what

NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")


def number_of(node: Node, unit: str | None) -> Number:
    """A number, or a quantity such as 200ms, in `unit` (None: the quantity's base unit).

    Raises ValueError "want …; got …".
    """
    kind, base = _quantity(unit)
    want = "a number" + (f", or {kind.want}" if kind else "")
    if not isinstance(node, Scalar) or node.empty:
        raise ValueError(f"want {want}; got {what(node)}")
    if NUMBER.fullmatch(node.text):
        value = float(node.text)
        if math.isinf(value):
            raise ValueError(f"want {want}; got {what(node)}")
        return int(node.text) if re.fullmatch(r"[-+]?[0-9]{1,18}", node.text) else value
    for quantity in (kind,) if unit is not None else (Rate, Duration, Bytes):
        try:
            if quantity is not None:
                return _shortest(int(quantity.parse(node.text)), base)
        except (ValueError, ArithmeticError):
            continue
    share = node.text[:-1].strip() if node.text.endswith("%") and unit == "" else ""
    meant = f"; did you mean {float(share) / 100:g}?" if NUMBER.fullmatch(share) else ""
    raise ValueError(f"want {want}; got {what(node)}{value_meant(Amount(kind), node.text) if kind else meant}")


def _shortest(value: int, base: int) -> Number:
    return value // base if value % base == 0 else value / base


def _quantity(unit: str | None) -> tuple[type[Quantity] | None, int]:
    """The kind of quantity of a metric's unit, and its size in base units."""
    if unit == "bit/s":
        return Rate, 1
    for kind in (Duration, Bytes):
        if unit and unit in kind.units:
            return kind, kind.units[unit]
    return None, 1
