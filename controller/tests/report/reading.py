# SPDX-License-Identifier: Apache-2.0
"""Reads what report.html has embedded, as report.js does."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

LETTERS = str.maketrans(",.:", "<>&")
COLUMNS = ("t", "y", "least", "most", "length", "flags", "ecn")


def element(html: str, name: str) -> str:
    """The text of a script element; "" if there is none."""
    found = re.search(rf' id="{re.escape(name)}"[^>]*>([^<]*)', html)
    return found[1] if found else ""


def inflated(text: str) -> bytes:
    """The bytes of a packed element."""
    return zlib.decompress(base64.b85decode(text.translate(LETTERS)), -zlib.MAX_WBITS)


def numbers(column: Sequence[int]) -> list[int]:
    """The numbers of a column."""
    return [column[0] * total for total in accumulate(column[1:])]


def lines(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of a figure with their numbers."""
    return [{key: numbers(one) if key in COLUMNS else one for key, one in line.items()} for line in data["lines"]]


def point_of(html: str, point: str) -> dict[str, Any]:
    """A point's figures and lists."""
    same = re.search(rf' id="d-{point}" data-same="([^"]+)"', html)
    found: dict[str, Any] = json.loads(inflated(element(html, f"d-{same[1] if same else point}")))
    return found


def drawn_points(html: str) -> list[str]:
    """The points that have figures, in order."""
    return re.findall(r'<script type="text/plain" id="d-([^"]+)"', html)
