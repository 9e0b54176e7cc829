# SPDX-License-Identifier: Apache-2.0
"""Errors that are reported to a user without a traceback.

Names in a program are whatever its file says, so control characters are removed from the text.
"""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Error(Exception):
    exit_code = 3

    def __init__(self, text: str) -> None:
        super().__init__(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


class ProgramError(Error):
    """A P4 program can't be translated; the text names its file and line."""

    exit_code = 2


class ToolError(Error):
    """A compiler is not installed, or fails."""
