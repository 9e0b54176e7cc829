# SPDX-License-Identifier: Apache-2.0
"""Which boot a machine is in, as its agent says it, and waiting for the next one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.boot_notes import BOOT, WAS
from testctl_agent.spec.errors import TestbedError

from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.leased_agents import CLOCK_NS, offset, seconds
from testctl_rack.mtls import describe, explain, look, open_channel, read_keys

BOOT_LIMIT = "TESTCTL_BOOT_S"
"""Environment variable: the seconds that a machine has from its reboot until its agent answers."""
BOOT_S = 600.0
CLOCK_S = 120.0
"""How long a machine that has booted may take to set its clock."""
LOOK_S = 1.0


@dataclass(frozen=True)
class Seen:
    """release: that runs; boot: the id of this boot; was: the release that it is to have again, "" outside of a run."""

    release: str
    boot: str
    was: str = ""


def seen_in(description: pb.Description) -> Seen:
    notes = description.notes
    return Seen(description.kernel, notes.get(BOOT, ""), notes.get(WAS, ""))


def seconds_to_boot() -> float:
    return seconds(BOOT_LIMIT, BOOT_S, 10, 7200)


class Booted:
    """Asks agents which boot they are in."""

    def __init__(self, rack: Rack, ticket: str = "") -> None:
        self._keys = read_keys(rack.keys)
        self._ticket = ticket
        self.unreached: dict[str, str] = {}
        """Of the last look of await_boots: why a machine did not answer."""

    def all(self, machines: Iterable[Machine]) -> dict[str, Seen]:
        """Raises TestbedError with all that do not answer."""
        seen, wrong = self.reached(machines)
        if wrong:
            raise TestbedError("\n".join(wrong.values()))
        return seen

    def reached(self, machines: Iterable[Machine]) -> tuple[dict[str, Seen], dict[str, str]]:
        """The boots of the machines that answer, and the errors of the others."""
        seen, wrong = {}, {}
        for machine in machines:
            try:
                seen[machine.name] = seen_in(self._ask(machine, describe))
            except grpc.RpcError as error:
                wrong[machine.name] = explain(str(machine), error)
        return seen, wrong

    def _ask(self, machine: Machine, what: Any) -> Any:
        with open_channel(machine, self._keys) as channel:
            return what(Stub(channel))

    def await_boots(
        self, machines: Mapping[str, Machine], before: Mapping[str, str], limit_s: float
    ) -> dict[str, Seen]:
        """Wait until each is in another boot than before; those that are not within the limit are left out."""
        until = time.monotonic() + limit_s
        booted: dict[str, Seen] = {}
        while (left := [machine for name, machine in machines.items() if name not in booted]) and (
            time.monotonic() < until
        ):
            seen, self.unreached = self.reached(left)
            booted |= {name: now for name, now in seen.items() if now.boot != before[name]}
            time.sleep(LOOK_S)
        return booted

    def await_clocks(self, machines: Sequence[Machine]) -> None:
        """Wait until clocks are as points want them.  One that never is breaks its points, with its offset."""
        until = time.monotonic() + CLOCK_S
        left = list(machines)
        while left and time.monotonic() < until:
            left = [machine for machine in left if not self._clock_is_right(machine)]
            if left:
                time.sleep(LOOK_S)

    def _clock_is_right(self, machine: Machine) -> bool:
        try:
            offset_ns, error_ns = self._ask(machine, lambda stub: _clock(stub, self._ticket))
        except grpc.RpcError:
            return False
        return bool(abs(offset_ns) - error_ns <= CLOCK_NS / 2)


def _clock(stub: Any, ticket: str) -> tuple[int, int]:
    before_ns = time.time_ns()
    lease, came_ns = look(stub, "comparing clocks after a boot", ticket)
    return offset(before_ns, lease.time_ns, came_ns)
