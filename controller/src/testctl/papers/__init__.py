# SPDX-License-Identifier: Apache-2.0
"""Papers as oracles: runs their plans, compares their claims with the results, and writes one scorecard."""

from testctl.papers.run import load_papers, run_papers
from testctl.papers.scorecard import Scorecard
from testctl.papers.terminal import print_scorecard
from testctl.papers.write import check_out, write_scorecard

__all__ = ["Scorecard", "check_out", "load_papers", "print_scorecard", "run_papers", "write_scorecard"]
