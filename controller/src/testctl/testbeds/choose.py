# SPDX-License-Identifier: Apache-2.0
"""The testbed that a word of the command line stands for."""

from __future__ import annotations

from collections.abc import Sequence

from testctl_agent.spec.errors import PlanError

from testctl.execute import Bed
from testctl.plan import Point

NAMES = ("lab", "netns")
"""The testbeds that have a name of their own."""


def choose(testbed: str, points: Sequence[Point], wall_limit_s: float | None = None) -> Bed:
    """The testbed, ready for these points.

    wall_limit_s: seconds of wall time a point may take (lab).  Raises PlanError for a name that is none,
    TestbedError when the machine can't have it.
    """
    if testbed == "lab":
        from testctl.testbeds.lab import LabTestbed

        return LabTestbed.for_points(points, wall_limit_s)
    if testbed == "netns":
        from testctl.testbeds.netns import NetnsTestbed

        return NetnsTestbed.for_points(points, wall_limit_s)
    raise PlanError(f"--testbed: want one of {', '.join(NAMES)}; got {testbed!r}")


def interrupted(bed: Bed) -> None:
    """After the workers were killed: what they had made goes, where it does not go with them."""
    from testctl.testbeds import netns

    if isinstance(bed, netns.NetnsTestbed):
        netns.clean()
