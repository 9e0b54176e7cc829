# SPDX-License-Identifier: Apache-2.0
"""Reads Dask's pickles in the controller without running code.

Dask's client unpickles messages of workers: errors, warnings, and everything that is marked as a pickle.  This
project needs no pickles: its workers return JSON as bytes.  While a cluster is used, a pickle may only refer to a
short list of classes of Exception; every other class becomes an NotUnpickled.
"""

from __future__ import annotations

import builtins
import io
import pickle
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

PLAIN = (set, frozenset, bytes, bytearray)


class NotUnpickled(Exception):
    """Replaces a class that is not on the list; it does nothing with its arguments."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__("an object that is not unpickled")

    def __setstate__(self, state: Any) -> None:
        slots = state[1] if isinstance(state, tuple) and len(state) == 2 else state
        address = slots.get("address") if isinstance(slots, dict) else None
        self.address = address if isinstance(address, str) else "not known"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return "not known"


def _exception(kind: Any, text: Any, *_: Any) -> BaseException:
    """An exception with its text, without its traceback; one that ends a process or a task is none."""
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = NotUnpickled
    given = text.get("args", ()) if isinstance(text, dict) else text
    found: BaseException = kind(*(one for one in given if isinstance(one, str | int | BaseException)))
    return found


def _nothing(*_: Any) -> None:
    """Replaces a traceback, which Dask does not need."""


_TBLIB = {
    "tblib.pickling_support.unpickle_exception": _exception,
    "tblib.pickling_support.unpickle_exception_with_attrs": _exception,
    "tblib.pickling_support.unpickle_traceback": _nothing,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        known = {one.__module__ + "." + one.__name__: one for one in (CommClosedError, KilledWorker)}
        found = getattr(builtins, name, None) if module == "builtins" and "." not in name else None
        if isinstance(found, type) and (issubclass(found, Exception) or found in PLAIN):
            return found
        return known.get(f"{module}.{name}") or _TBLIB.get(f"{module}.{name}", NotUnpickled)


def loads(data: bytes, /, *, buffers: Iterable[Any] = (), **_: Any) -> Any:
    """As pickle.loads, without running code from the pickle."""
    return _Reader(io.BytesIO(data), buffers=buffers).load()


@contextmanager
def inert_pickles() -> Iterator[None]:
    """Dask's client in this process reads pickles as loads() does."""
    from distributed import client
    from distributed.protocol import pickle as protocol

    shim = types.ModuleType("pickle")
    shim.__dict__.update({**vars(pickle), "loads": loads})
    kept = [(module, module.pickle) for module in (client, protocol)]
    try:
        for module, _ in kept:
            module.pickle = shim
        yield
    finally:
        for module, real in kept:
            module.pickle = real
