# SPDX-License-Identifier: Apache-2.0
"""What a metric is: pure data about its values, and a pure function beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Number = float | int | str
Better = Literal["higher", "lower", "none"]

NAN = float("nan")


@dataclass(frozen=True)
class MetricInfo:
    """One value that a metric yields: the name that a plan's `expect` uses.  `text`: it is no number."""

    name: str
    unit: str
    help: str
    better: Better = "none"
    text: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"metric {self.name!r}: want a name of small letters, digits and _")


@dataclass(frozen=True)
class MetricSpec:
    """A metric file: `name` is the file's, `values` all that its `compute` yields.

    scope "flow": compute(records, flow) is called for every flow; "point": once, with flow "*".
    """

    name: str
    help: str
    values: tuple[MetricInfo, ...]
    scope: Literal["flow", "point"] = "flow"


WIDTHS: dict[str, int] = {
    "1s": 10**9,
    "100ms": 10**8,
    "10ms": 10**7,
    "1ms": 10**6,
    "100us": 10**5,
    "10us": 10**4,
    "1us": 10**3,
}
"""Bin widths that parametric names end in, and their ns."""
