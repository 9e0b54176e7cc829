# SPDX-License-Identifier: Apache-2.0
"""Report of a run: one self-contained page, figures, and what the terminal shows."""

from testctl.report.point_terminal import print_point
from testctl.report.progress import Drawing, Progress
from testctl.report.sweep_terminal import print_plots
from testctl.report.terminal import print_place, print_summary
from testctl.report.write import DRAWN, most_telling, write_report

__all__ = [
    "DRAWN",
    "Drawing",
    "Progress",
    "most_telling",
    "print_place",
    "print_plots",
    "print_point",
    "print_summary",
    "write_report",
]
