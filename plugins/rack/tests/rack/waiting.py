# SPDX-License-Identifier: Apache-2.0
"""A program that makes the rack of a directory and waits: python waiting.py DIR."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
sys.path[:0] = [str(ROOT), str(ROOT / "plugins" / "rack" / "tools")]

from plugins.rack.tests.rack.bed import bed  # noqa: E402  the path is set above

with bed(Path(sys.argv[1])):
    print("made", flush=True)
    sys.stdin.read()
