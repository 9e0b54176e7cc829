# SPDX-License-Identifier: Apache-2.0
"""The exit code of a run."""

from __future__ import annotations

from testctl.results import Run

SKIPPED = 4
"""Nothing was measured."""


def exit_code(run: Run) -> int:
    """0 what was measured passed, 1 some expectation failed, 3 something is broken or invalid, 4 all was skipped."""
    verdicts = {point.verdict for point in run.points}
    if verdicts == {"skip"}:
        return SKIPPED
    verdicts |= {expectation["verdict"] for expectation in run.summary.get("expectations", [])}
    if verdicts & {"broken", "invalid"}:
        return 3
    return 1 if "fail" in verdicts else 0
