# SPDX-License-Identifier: Apache-2.0
"""testctl: a test framework for TCP (see README.md, and docs/library.md for `testctl.load`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testctl.api import load as load

__all__ = ["__version__", "load"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The library is loaded when it is first used: the commands do not need it."""
    if name == "load":
        from testctl.api import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
