# SPDX-License-Identifier: Apache-2.0
"""Reads what report.html has packed, as static/export.js does."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

LETTERS = str.maketrans(",.:", "<>&")


def element(html: str, name: str) -> str:
    """The text of a script element; "" if there is none."""
    found = re.search(rf' id="{re.escape(name)}"[^>]*>([^<]*)', html)
    return found[1] if found else ""


def inflated(text: str) -> bytes:
    """The bytes of a packed element."""
    return zlib.decompress(base64.b85decode(text.translate(LETTERS)), -zlib.MAX_WBITS)


def unpacked(text: str) -> Any:
    """The data of a packed element."""
    return json.loads(inflated(text), object_hook=_column)


def numbers(column: Sequence[int]) -> list[int]:
    """The numbers of a column."""
    return [column[0] * total for total in accumulate(column[1:])]


def run_of(html: str) -> dict[str, Any]:
    """What the page says of the run: {"run", "sweeps", "looks", …}."""
    found: dict[str, Any] = unpacked(element(html, "e-run"))
    return found


def point_of(html: str, point: str) -> dict[str, Any]:
    """A point's figures and lists."""
    same = re.search(rf' id="d-{point}" data-same="([^"]+)"', html)
    found: dict[str, Any] = unpacked(element(html, f"d-{same[1] if same else point}"))
    return found


def text_of(page: Path) -> str:
    """All that a report says, packed or not."""
    html = page.read_text(encoding="utf-8")
    packed = re.findall(r'<script type="text/plain" id="(?!vega")[^>]*>([^<]+)', html)
    return html + "".join(inflated(text).decode() for text in packed)


def drawn_points(html: str) -> list[str]:
    """The points that have figures, in order."""
    return re.findall(r'<script type="text/plain" id="d-([^"]+)"', html)


def _column(found: dict[str, Any]) -> Any:
    if "~" not in found:
        return found
    values: list[int | None] = [*numbers(found["~"])]
    for place in found.get("!", ()):
        values[place] = None
    return values
