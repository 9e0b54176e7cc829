# SPDX-License-Identifier: Apache-2.0
"""The library of the controller's C code, which is built when testctl is installed (pyproject.toml).

It makes a point's packets (packets.h; the structures are in structures.py), and has the walks of metrics/core/native.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os

from testctl_agent.spec.errors import TestbedError

from testctl.records.native.structures import Library

MODULE = "testctl._native"
GIVEN = "TESTCTL_NATIVE"
"""Environment variable: the path of a library that was compiled otherwise."""


@functools.cache
def loaded() -> ctypes.CDLL:
    """Raises TestbedError."""
    built = importlib.util.find_spec(MODULE)
    path = os.environ.get(GIVEN) or (built and built.origin)
    if not path:
        raise TestbedError(f"{MODULE}: this part of testctl, which is in C, is not built: install testctl again "
                           "(in a checkout: tools/setup)")  # fmt: skip
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise TestbedError(f"{path}: want the library of testctl's C code; got {error}") from error


@functools.cache
def library() -> Library:
    """What reads packets.  Raises TestbedError."""
    return Library(loaded())
