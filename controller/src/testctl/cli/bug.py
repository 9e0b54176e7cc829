# SPDX-License-Identifier: Apache-2.0
"""An exception that nobody foresaw, in one sentence; its traceback goes to a file."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

from testctl.system.checkout import cache_dir

EXIT = 3
"""As for a broken testbed: 1 would say that an expectation failed."""


def sentence(error: Exception) -> str:
    """What happened where, and the file that has the traceback."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    summary = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]} ({where.filename}:{where.lineno})"
    text = "".join(traceback.format_exception(error))
    try:
        return f"{summary}; the traceback is in {_written(text)}"
    except OSError as failure:
        return f"{summary}; its traceback can't be written ({failure.strerror}):\n{text}"


def _written(text: str) -> Path:
    """A file of this user's cache, which nobody else writes to."""
    directory = cache_dir() / "tracebacks"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.txt"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path
