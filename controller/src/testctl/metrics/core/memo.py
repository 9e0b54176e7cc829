# SPDX-License-Identifier: Apache-2.0
"""Keeps in a point's records what was computed from them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")


def once(make: Callable[P, T]) -> Callable[P, T]:
    """A function of Records or of a FlowView (its first argument), computed once for the same arguments.

    The other arguments are hashable.  The value is shared: nobody may change it.
    """

    @wraps(make)
    def kept(*args: P.args, **kwargs: P.kwargs) -> T:
        of: Any = args[0]
        memo: dict[Any, Any] = getattr(of, "records", of).memo
        key = (make, getattr(of, "name", None), args[1:], tuple(kwargs.items()))
        if key not in memo:
            memo[key] = make(*args, **kwargs)
        return cast(T, memo[key])

    return kept


def forget(records: Any, kept: Collection[Callable[..., Any]]) -> None:
    """Drop what was computed from these Records, and their columns, but for the values of the functions `kept`."""
    makes = [getattr(function, "__wrapped__", function) for function in kept]
    for key in [key for key in records.memo if key[0] not in makes]:
        del records.memo[key]
    pa.default_memory_pool().release_unused()
