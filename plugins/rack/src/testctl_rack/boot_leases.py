# SPDX-License-Identifier: Apache-2.0
"""Leases on machines that are booted: each is followed, across the boot, by the run's place in the machine's queue."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from testctl_agent.spec.errors import TestbedError
from testctl_agent.wire import messages

from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.leased_agents import RemoteAgents
from testctl_rack.placement import Placement
from testctl_rack.reservation import holder


@contextmanager
def boot_leases(rack: Rack, machines: Iterable[Machine], ticket: str, limit_s: float = 0.0) -> Iterator[dict[str, str]]:
    """Yields the error, with who has it, for each machine that is not to be had.

    limit_s: how long the place is kept after the agent's next start; 0: no machine is to be booted
    """
    wrong: dict[str, str] = {}
    with ExitStack() as stack:
        for machine in sorted(machines, key=lambda machine: machine.name):
            agents = RemoteAgents(rack, Placement({machine.name: machine}), holder("boots it"), ticket)
            try:
                stack.enter_context(agents)
                if limit_s:
                    agents.call(machine.name, "Boot", messages.BootRequest(limit_ns=int(limit_s * 1e9)))
            except TestbedError as error:
                wrong[machine.name] = str(error)
        yield wrong


def run_of(ticket: str) -> str:
    """The hash by which root of a machine knows a run (boot_once.py)."""
    return hashlib.sha256(ticket.encode()).hexdigest()
