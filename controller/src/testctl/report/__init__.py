# SPDX-License-Identifier: Apache-2.0
"""Report of a run: one self-contained page, figures, and what the terminal shows."""

from testctl.report.figures import paper_figures
from testctl.report.progress import Drawing, Progress
from testctl.report.sweep_terminal import print_plots
from testctl.report.terminal import print_place, print_summary
from testctl.report.write import DRAWN, most_telling, write_report

__all__ = [
    "DRAWN",
    "Drawing",
    "Progress",
    "most_telling",
    "paper_figures",
    "print_place",
    "print_plots",
    "print_summary",
    "write_report",
]
