# SPDX-License-Identifier: Apache-2.0
"""A tuple of an inferred plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuple:
    """One value, or several that are swept; why: what it was inferred from."""

    entity: str
    param: str
    values: tuple[str, ...]
    why: str
