# SPDX-License-Identifier: Apache-2.0
"""When Python looks for garbage."""

from __future__ import annotations

import gc


def look_seldom() -> None:
    """What a command imports and reads stays to its end: looking through it every 700 objects is for nothing."""
    gc.set_threshold(50_000, 20, 100)
