# SPDX-License-Identifier: Apache-2.0
"""Values as plans write them ("10mbit", "30ms"), as numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from testctl_agent.spec.units import Bytes, Duration, Quantity, Rate

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_SUFFIXES: dict[type[Quantity], str] = {Duration: "_s", Rate: "_bps", Bytes: "_bytes"}


@dataclass(frozen=True)
class Numbers:
    """Values as numbers.

    base     in the base unit of the kind: ns, bit/s, bytes; as they are, where they have no unit
    kind     the quantity; None: whole numbers without a unit
    """

    base: Sequence[int]
    kind: type[Quantity] | None = None

    @property
    def suffix(self) -> str:
        """What the name of a column of `values` ends in: their unit."""
        return _SUFFIXES[self.kind] if self.kind else ""

    @property
    def values(self) -> Sequence[float]:
        """In s, bit/s or bytes."""
        return [value / 1_000_000_000 for value in self.base] if self.kind is Duration else self.base


def numeric(texts: Sequence[str]) -> Numbers | None:
    """These values as numbers, where all are whole numbers or quantities of one kind; else None.

    6.1 and 6.12 are kernels, and no numbers.
    """
    if all(_WHOLE.fullmatch(text) for text in texts):
        return Numbers([int(text) for text in texts]) if texts else None
    if not all(_WHOLE.fullmatch(text) or text[-1:].isalpha() for text in texts):
        return None
    for kind in _SUFFIXES:
        try:
            return Numbers([int(kind.parse(text)) for text in texts], kind)
        except ValueError:
            continue
    return None
