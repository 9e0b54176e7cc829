# SPDX-License-Identifier: Apache-2.0
"""A controller's leases on agents of which some do not answer any more."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError
from testctl_rack import leased_agents
from testctl_rack.inventory_file import Rack
from testctl_rack.placement import Placement

from agents.tests.daemon.daemons import Daemon
from plugins.rack.tests.loopback_rack import loopback_rack

NAMES = ("alpha", "beta", "gamma", "delta")


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[tuple[Rack, dict[str, Daemon]]]:
    """Four hosts on the loopback."""
    with loopback_rack(tmp_path, NAMES) as made:
        yield made


def test_a_lease_does_not_wait_for_hosts_that_are_dead(
    agents: tuple[Rack, dict[str, Daemon]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked one after the other, three dead hosts would take longer than the fourth's lease lasts."""
    rack, daemons = agents
    monkeypatch.setenv(leased_agents.LEASE, "6")
    with leased_agents.RemoteAgents(rack, Placement(rack.machines), "a test") as held:
        for name in NAMES[:3]:
            daemons[name].process.send_signal(signal.SIGSTOP)
        time.sleep(14)
        held.call("delta", "Restore", pb.RestoreRequest())
        for name in NAMES[:3]:
            with pytest.raises(TestbedError, match=f"host {name} .*its lease is lost"):
                held.call(name, "Restore", pb.RestoreRequest())
            daemons[name].process.send_signal(signal.SIGCONT)
