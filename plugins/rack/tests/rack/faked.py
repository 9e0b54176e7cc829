# SPDX-License-Identifier: Apache-2.0
"""Programs whose clock is wrong, by libfaketime."""

from __future__ import annotations

from pathlib import Path

import pytest

FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
needs_faketime = pytest.mark.skipif(FAKETIME is None, reason="needs faketime: apt-get install faketime")


def faked(offset: str, *words: str) -> list[str]:
    """What starts a program whose clock is wrong.

    offset: FAKETIME, which holds for all of a program's threads. An offset from a file that is read at each call
      (FAKETIME_TIMESTAMP_FILE with FAKETIME_NO_CACHE) is missed by 1 reading of 1,000 while another thread reads it:
      only for a clock that steps, where one true reading among many false ones changes nothing.
    """
    return [
        "env",
        f"LD_PRELOAD={FAKETIME}",
        f"{offset}",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "FAKETIME_DONT_RESET=1",
        *words,
    ]
