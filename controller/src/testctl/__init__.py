# SPDX-License-Identifier: Apache-2.0
"""testctl: a test framework for TCP (see README.md, and docs/library.md for `testctl.load`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testctl.api import load as load
    from testctl.api import load_all as load_all

__all__ = ["__version__", "load", "load_all"]
__version__ = "0.1.0"

# Before numpy is imported: it asks for huge pages, which can take longer than small ones (docs/adr/0011).
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")


def __getattr__(name: str) -> Any:
    """The library is loaded when it is first used: the commands do not need it."""
    if name in ("load", "load_all"):
        from testctl import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
