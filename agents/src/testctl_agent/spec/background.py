# SPDX-License-Identifier: Apache-2.0
"""Background traffic of a port: requests of other hosts that cross it.

    background = "none" | LOAD SIZES

LOAD is a share of the port's rate, SIZES a distribution (spec/workload.py), a size, or "SIZE:SHARE SIZE:SHARE …".
"""

from __future__ import annotations

from dataclasses import dataclass

from testctl_agent.spec import workload

NONE = "none"
WANT = "a load and sizes, such as '30% websearch' or '0.5 20kB', or none"
_MOST_LOAD = 0.99


@dataclass(frozen=True)
class Background:
    """load: a share of the port's rate, above 0; sizes: the text of a distribution."""

    load: float
    sizes: str

    def __str__(self) -> str:
        return f"{self.load:g} {self.sizes}"


def parse(text: str) -> Background | None:
    """None: the port has none.  Raises ValueError "want …; got …"."""
    word, _, sizes = text.strip().partition(" ")
    if text.strip() == NONE:
        return None
    if not sizes.strip():
        raise ValueError(f"want {WANT}; got {text[:80]!r}")
    return Background(_load(word), str(workload.of_text(sizes.strip())))


def _load(word: str) -> float:
    try:
        load = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        load = 0.0
    if not 0 < load <= _MOST_LOAD:
        raise ValueError(f"want a load above 0 and at most {_MOST_LOAD:.0%} of the port's rate; got {word[:40]!r}")
    return load


def canonical(text: str) -> str:
    return str(parse(text) or NONE)
