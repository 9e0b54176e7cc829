# SPDX-License-Identifier: Apache-2.0
"""Passes over the rows of a trace in C (running.c): each reads its columns once, and writes its result once."""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from testctl.records.native import loaded
from testctl.records.schema import Array, Bools, Ints


def run(name: str, begins: Bools, among: Bools | None, *columns: Array, numbers: tuple[int, ...] = ()) -> Ints:
    """The result of a pass: a number for each row of the mask `among`, None: for all; for others any number.

    begins   the first rows of connections
    columns  numbers of 64 bits, or masks
    numbers  of the pass: running.c says which
    """
    result = (np.empty if among is None else np.zeros)(len(begins), np.int64)
    if among is None:
        among = np.broadcast_to(np.True_, len(begins))
    elif not among.any():
        return result
    held = [np.ascontiguousarray(column) for column in (begins, *columns, among)]
    pointers = [c_void_p(column.ctypes.data) for column in (*held, result)]
    _function(name)(c_int64(len(result)), *map(c_int64, numbers), *pointers)
    return result


@cache
def _function(name: str) -> Any:
    function = getattr(loaded(), f"running_{name}")
    function.restype = None
    return function
