# SPDX-License-Identifier: Apache-2.0
"""A controller's leases on agents of which some do not answer any more."""

from __future__ import annotations

import signal
import time

import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError
from testctl_rack import leased_agents
from testctl_rack.placement import Placement

from plugins.rack.tests.rack.bed import Bed

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]
HOSTS = 4
DEAD = ("alpha", "beta", "gamma")


def test_a_lease_does_not_wait_for_hosts_that_are_dead(rack: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked one after the other, three dead hosts would take longer than the fourth's lease lasts."""
    monkeypatch.setenv(leased_agents.LEASE, "6")
    hosts = rack.hosts()
    with leased_agents.RemoteAgents(hosts, Placement(hosts.machines), "a test") as held:
        for name in DEAD:
            rack.agents[name].send_signal(signal.SIGSTOP)
        time.sleep(14)
        held.call("delta", "Restore", pb.RestoreRequest())
        for name in DEAD:
            with pytest.raises(TestbedError, match=f"host {name} .*its lease is lost"):
                held.call(name, "Restore", pb.RestoreRequest())
            rack.agents[name].send_signal(signal.SIGCONT)
