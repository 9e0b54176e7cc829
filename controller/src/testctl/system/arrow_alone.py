# SPDX-License-Identifier: Apache-2.0
"""pyarrow without pandas, until somebody imports that."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any


def load() -> None:
    """Let pyarrow's first conversion not import pandas, only to see that no value is one of its own.

    It takes a third of a second.  Who imports pandas or calls `to_pandas` has it as ever.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    api = pa.lib._pandas_api
    hides = _Hidden(api)
    sys.meta_path.insert(0, hides)
    try:
        pa.array([0]).to_numpy()
    finally:
        hides.hiding = False


class _Hidden(MetaPathFinder):
    """Says that there is no pandas; later, to the first who imports it, nothing, and to pyarrow that it is there."""

    def __init__(self, api: Any) -> None:
        self.hiding = True
        self._api = api

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name != "pandas":
            return
        if self.hiding:
            raise ModuleNotFoundError(name=name)
        sys.meta_path.remove(self)
        self._api.__init__()  # it looks again
