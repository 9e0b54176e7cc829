# SPDX-License-Identifier: Apache-2.0
"""Anybody's capture as a run with one point: `testctl analyse`."""

from testctl.analyse.listing import lines, listed
from testctl.analyse.run import Chosen, analyse_files, check_memory, choose, need_bytes
from testctl.analyse.walk import Scanned, scan

__all__ = [
    "Chosen",
    "Scanned",
    "analyse_files",
    "check_memory",
    "choose",
    "lines",
    "listed",
    "need_bytes",
    "scan",
]
