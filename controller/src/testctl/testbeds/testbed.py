# SPDX-License-Identifier: Apache-2.0
"""What a testbed offers; a distribution adds one by an entry point of the group `testctl.testbeds` (choose.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from testctl_agent.spec.errors import PlanError

from testctl.plan import Plan, Point
from testctl.testbeds.ready import ReadyTestbed
from testctl.testbeds.requirements import Diagnosis

if TYPE_CHECKING:
    from testctl.lab.kernel import Kernel


@dataclass(frozen=True)
class Request:
    """How the points are to be run.

    wall_limit_s  seconds of wall time that a point may take
    jobs          points at once
    wait_s        how long to wait for a testbed that others use
    kernel        in the lab: the one for all points, whichever they name
    commands      whether points may start programs of their plan: yes for a plan that the user names; for a run's
                  plan, which may be another person's, only if the user says so
    """

    wall_limit_s: float | None = None
    jobs: int = 1
    wait_s: float = 0.0
    kernel: Kernel | None = None
    commands: bool = False

    def refuse_wait(self, testbed: str) -> None:
        """Of a testbed that nobody shares."""
        if self.wait_s:
            raise PlanError(
                f"--wait: want an inventory, whose machines may be leased to others; got --testbed {testbed}"
            )


@runtime_checkable
class Testbed(Protocol):
    """What stands after --testbed.

    All but `lab` and `netns` count as a rack (core/testbed_kind.py): machines elsewhere, by the wall clock, whose plans
    may set the parameters that have the testbed `inventory`.
    """

    def check(self, plan: Plan) -> None:
        """Raises PlanError for a kernel that can't be had, or lacks what the plan sets.  Changes nothing."""
        return None

    def places(self, plan: Plan) -> dict[str, str]:
        """The machine for each entity of a plan, without calling any agent; {} where there is no choice.

        Raises PlanError as a run would.
        """
        return {}

    def ready(self, points: Sequence[Point], request: Request) -> ReadyTestbed:
        """The testbed, ready for these points.  Raises PlanError, TestbedError."""

    def requirements(self) -> list[Diagnosis]:
        """What this machine must have for it, in addition to the lab's needs; never raises for something missing."""
        return []

    def interrupted(self) -> None:
        """Remove what killed workers left behind, where that is necessary."""
        return None
