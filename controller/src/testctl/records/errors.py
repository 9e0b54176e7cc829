# SPDX-License-Identifier: Apache-2.0
"""Errors of raw output and of records that can't be read."""

from __future__ import annotations

from pathlib import Path

from testctl_agent.spec.errors import TestbedError


class RecordsError(TestbedError):
    """A file of a point's output is missing, damaged or not what it says it is."""

    def __init__(self, path: Path | str, what: str, offset: int | None = None) -> None:
        self.path = Path(path)
        self.offset = offset
        place = str(path) if offset is None else f"{path}: byte {offset}"
        super().__init__(f"{place}: {what}")
