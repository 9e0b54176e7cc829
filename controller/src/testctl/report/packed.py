# SPDX-License-Identifier: Apache-2.0
"""Data in report.html: JSON in which a column is its differences, deflated, as base85; static/export.js reads it.

{"~": [unit, d0, d1, …]} stands for the whole numbers unit * d0, unit * (d0 + d1), …: unit is what divides them all;
"!" has the places of those that are null.
The bytes depend on the data and on the zlib library alone.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import NoneType
from typing import Any

import numpy as np

from testctl.charts import Columns
from testctl.curves import Window
from testctl.records.schema import Array, Ints
from testctl.report.answer_text import answer_text

DIGITS = 4
"""Significant digits of a length of time: as many as a figure shows."""

SAFE = str.maketrans("<>&", ",.:")
"""Letters of Python's base85 that mean something in a page, and what stands for them."""

EXACT_SHARE = 20
"""Times of a whole point that has every sample are rounded to 2 ** -EXACT_SHARE of its length."""

COLUMN, MISSING = "~", "!"
"""Keys of an object that stands for a column."""

_SHORT = 4
"""Numbers of a list that gains nothing as a column."""

_TIMES, _VALUES = ("t", "x2"), ("y", "y2")


def packed(data: Any) -> str:
    """What stands in a script element."""
    return deflated(answer_text(_columns(data)).encode(errors="replace"))


def deflated(content: bytes) -> str:
    """Bytes as base85 of a raw deflate stream (RFC 1951): 1/16 shorter than base64, and nothing in it is markup."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    return base64.b85encode(packer.compress(content) + packer.flush()).decode("ascii").translate(SAFE)


def column(values: Sequence[int] | Ints) -> list[int]:
    """Whole numbers as a column."""
    numbers = np.asarray(values, np.int64)
    unit = max(int(np.gcd.reduce(numbers)), 1) if len(numbers) else 1
    return [unit, *np.diff(numbers // unit, prepend=0).tolist()]


def _columns(data: Any) -> Any:
    """The same with each list of whole numbers as a column; the places of missing ones are in a list of their own."""
    if isinstance(data, Mapping):
        return {key: _columns(value) for key, value in data.items()}
    if not isinstance(data, list | tuple):
        return data
    if len(data) <= _SHORT or {type(value) for value in data} - {int, NoneType} or data[0] is None:
        return [_columns(value) for value in data]
    gaps = [place for place, value in enumerate(data) if value is None]
    filled: list[int] = list(accumulate(data, lambda before, value: before if value is None else value))
    return {COLUMN: column(filled), **({MISSING: gaps} if gaps else {})}


def rounded(data: Mapping[str, Columns], kind: str, window: Window) -> dict[str, Columns]:
    """The data of a figure of a whole point as precise as it can be seen.

    kind  the unit of y: a length of time is rounded to DIGITS significant digits, anything else stays as it is

    Times of more values than the figure has columns are rounded to a quarter of a column.
    """
    return {name: {key: _rounded(key, values, kind, window) for key, values in of.items()} for name, of in data.items()}


def _rounded(key: str, values: Sequence[Any], kind: str, window: Window) -> Sequence[Any]:
    if key in _TIMES:
        step = max(window.bucket // 4 if len(values) > window.span // window.bucket else window.span >> EXACT_SHARE, 1)
        shown: Sequence[Any] = ((np.asarray(values, np.int64) + step // 2) // step * step).tolist()
        return shown
    if key in _VALUES and kind == "time":
        known = np.asarray([value or 0 for value in values], np.int64)
        return [None if value is None else new for value, new in zip(values, _digits(known).tolist(), strict=True)]
    return values


def _digits(values: Ints) -> Array:
    """Whole numbers rounded to DIGITS significant digits, half upwards."""
    size = 10 ** np.maximum(np.floor(np.log10(np.maximum(np.abs(values), 1))).astype(np.int64) - DIGITS + 1, 0)
    return np.asarray((values + size // 2) // size * size)
