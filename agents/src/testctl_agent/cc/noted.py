# SPDX-License-Identifier: Apache-2.0
"""Where shared.py, which is slow to import, notes who uses a congestion control."""

from pathlib import Path

STATE = Path("/run/testctl/cc")
