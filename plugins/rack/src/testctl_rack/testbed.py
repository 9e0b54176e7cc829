# SPDX-License-Identifier: Apache-2.0
"""The testbed of an Ansible inventory, as the command line names it: light to import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testctl.plan import Plan, Point
from testctl.testbeds.ready import ReadyTestbed
from testctl.testbeds.requirements import Diagnosis, install, where
from testctl.testbeds.testbed import Request, Testbed
from testctl_agent.spec.errors import PlanError

from testctl_rack import ansible

PROGRAMS = {"ssh": "openssh-client", "ssh-keygen": "openssh-client", "sshd": "openssh-server", "runsv": "runit"}
"""The first two for any rack, the others for one on this machine (make rack); program → Debian package."""


def testbed(word: str) -> Testbed:
    return Inventory(Path(word))


class Inventory(Testbed):
    """The rack of an inventory.

    Its kernels are known when its agents are called; an agent restores its machine when a lease ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def places(self, plan: Plan) -> dict[str, str]:
        from testctl_rack.inventory_file import read_rack
        from testctl_rack.placement import place

        return place(plan.topology, read_rack(self._path)).to_json()

    def ready(self, points: Sequence[Point], request: Request) -> ReadyTestbed:
        if request.jobs > 1:
            raise PlanError(f"--testbed {self._path}: a rack runs one point at once; want --jobs 1, got {request.jobs}")
        from testctl_rack.rack import InventoryTestbed

        return InventoryTestbed.for_points(points, self._path, request.wait_s)

    def requirements(self) -> list[Diagnosis]:
        """The programs of the deployment."""
        names = ("ansible", "ansible-inventory", "ansible-playbook")
        programs = {name: (ansible.program(name), "make setup") for name in names}
        programs |= {name: (where(name), install(package)) for name, package in PROGRAMS.items()}
        return [
            Diagnosis(f"rack: {name}", bool(path), path or "not found", fix, optional=True)
            for name, (path, fix) in programs.items()
        ]
