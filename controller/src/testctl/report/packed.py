# SPDX-License-Identifier: Apache-2.0
"""Data in report.html: JSON in which a column is its differences, deflated, as base85; report.js reads it.

A column [unit, d0, d1, …] stands for the whole numbers unit * d0, unit * (d0 + d1), …: unit is what divides them all.
The bytes depend on the data and on the zlib library alone.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from testctl.records.schema import Array, Ints

DIGITS = 4
"""Significant digits of a length of time: as many as a figure shows."""

SAFE = str.maketrans("<>&", ",.:")
"""Letters of Python's base85 that mean something in a page, and what stands for them."""

EXACT_SHARE = 20
"""Times of a whole point that has every sample are rounded to 2 ** -EXACT_SHARE of its length."""

_COLUMNS = ("t", "y", "least", "most", "length", "flags", "ecn")


def packed(data: Any) -> str:
    """What stands in a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return deflated(text.encode(errors="replace"))


def deflated(content: bytes) -> str:
    """Bytes as base85 of a raw deflate stream (RFC 1951): 1/16 shorter than base64, and nothing in it is markup."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    return base64.b85encode(packer.compress(content) + packer.flush()).decode("ascii").translate(SAFE)


def column(values: Sequence[int] | Ints) -> list[int]:
    """Whole numbers as a column."""
    numbers = np.asarray(values, np.int64)
    unit = max(int(np.gcd.reduce(numbers)), 1) if len(numbers) else 1
    return [unit, *np.diff(numbers // unit, prepend=0).tolist()]


def drawn(data: Mapping[str, Any], kind: str, whole_ns: int) -> dict[str, Any]:
    """A figure's data with its lines as columns, as precise as it can be seen.

    kind      the unit of y; of "time" it is rounded to DIGITS significant digits, of any other it stays as it is
    whole_ns  the length of the point if that is what the figure shows; 0 for a window of it

    Times of a thinned figure are rounded to a quarter of one of its columns, those of a window with every packet are
    exact.  Bins stay as they are.
    """
    bucket = data["bucket_ns"]
    step = 1 if "fine_ns" in data else max(bucket // 4 if bucket else whole_ns >> EXACT_SHARE, 1)
    lines = [_line(line, step, kind == "time") for line in data["lines"]]
    return {**data, "lines": lines}


def _line(line: Mapping[str, Any], step: int, rounded: bool) -> dict[str, Any]:
    found = dict(line)
    if step > 1:
        found["t"] = (np.asarray(line["t"], np.int64) + step // 2) // step * step
    if rounded:
        found["y"] = _digits(np.asarray(line["y"], np.int64))
    return {name: column(value) if name in _COLUMNS else value for name, value in found.items()}


def _digits(values: Ints) -> Array:
    """Whole numbers rounded to DIGITS significant digits, half upwards."""
    size = 10 ** np.maximum(np.floor(np.log10(np.maximum(np.abs(values), 1))).astype(np.int64) - DIGITS + 1, 0)
    return np.asarray((values + size // 2) // size * size)
