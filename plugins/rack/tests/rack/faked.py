# SPDX-License-Identifier: Apache-2.0
"""Programs whose clock is wrong, by libfaketime."""

from __future__ import annotations

from pathlib import Path

import pytest

FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
needs_faketime = pytest.mark.skipif(FAKETIME is None, reason="needs faketime: apt-get install faketime")


def faked(offset: str, *words: str) -> list[str]:
    """What starts a program whose clock is wrong."""
    return [
        "env",
        f"LD_PRELOAD={FAKETIME}",
        f"{offset}",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "FAKETIME_DONT_RESET=1",
        *words,
    ]
