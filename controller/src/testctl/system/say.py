# SPDX-License-Identifier: Apache-2.0
"""What a command prints while it works, and lines with words of agents, hosts and programs."""

from __future__ import annotations

import sys
from typing import TextIO

from testctl_agent.spec.untrusted import words


def say(text: str, file: TextIO | None = None) -> None:
    """Print a line without terminal controls; to standard error unless a file is given."""
    print(words(text), file=file or sys.stderr, flush=True)
