# SPDX-License-Identifier: Apache-2.0
"""JSON documents with odd values in some places."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

ODD: list[Any] = [
    None, True, False, 0, -1, 2**63, -(2**70), 10**400, 1e308, "", "x", "\x1b]0;mine\x07", [], {}, [None], [5],
    {"x": []},     {"connections": 5}, {"connections": [None]}, float("nan"), float("inf"),
]  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key there."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places(item)


def mutated(value: Any, draw: random.Random) -> Any:
    """The document with one to three places removed or replaced by something odd."""
    found = {"": copy.deepcopy(value)}
    for _ in range(draw.randint(1, 3)):
        holder, key = draw.choice(list(places(found)))
        if draw.random() < 0.2 and isinstance(holder, dict) and key:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(draw.choice(ODD))
    return found[""]
