# SPDX-License-Identifier: Apache-2.0
"""Reads noise.json, which the A/A test of a testbed in wall-clock time wrote."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

FILE = "noise.json"
NEEDED = ("machine", "testbed", "plan", "started", "repeat", "alone", "most_at_once")


def machine() -> dict[str, Any]:
    """The properties of a machine that its noise depends on."""
    return {"node": platform.node(), "kernel": platform.release(), "processors": os.cpu_count() or 1}


def newest(results: Path, testbed: str) -> dict[str, Any] | None:
    """The newest noise of this machine and testbed below a directory of results; None when there is none.

    A file that can't be read is skipped.
    """
    document_: dict[str, Any] | None = None
    for path in results.glob(f"*/{FILE}"):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if not isinstance(document, dict) or any(name not in document for name in NEEDED):
            continue
        same = (document["machine"], document["testbed"]) == (machine(), testbed)
        if same and (document_ is None or document["started"] > document_["started"]):
            document_ = document
    return document_
