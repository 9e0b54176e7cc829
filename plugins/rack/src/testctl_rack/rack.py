# SPDX-License-Identifier: Apache-2.0
"""A rack of hosts and switches as a testbed: a point in, its raw outcome out."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec
from testctl.records.counters import read_counters
from testctl.testbeds.point_runner import Hooks, PointRun, outcome_of
from testctl.testbeds.point_spec import spec_of
from testctl.testbeds.traffic_time import WallTime
from testctl_agent.daemon import LEASE_KEY
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.params import others
from testctl_agent.spec.errors import PlanError, TestbedError, TestctlError
from testctl_agent.system.identity import version

from testctl_rack.booted import Booted, seen_in
from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import Machine, Rack, read_rack
from testctl_rack.kernels import Kernels, back, in_order, short, wanted
from testctl_rack.leased_agents import CLOCK_NS, RemoteAgents
from testctl_rack.menus import menus
from testctl_rack.mtls import ANSWER_S, HELD, Keys, describe, explain, look, open_channel, read_keys
from testctl_rack.paths import RackPaths
from testctl_rack.placement import Placement, place
from testctl_rack.reservation import Reservation, holder


@dataclass(frozen=True)
class InventoryTestbed:
    """Runs points one after the other on the machines of a rack.  Picklable: workers get a copy.

    placements  of each topology (as JSON) that the plan has
    described   hash of each machine's description of itself: kernel, agent
    kernels     of hosts that the plan's points boot; None: they boot none
    reservation  the run's places in the queues of its machines
    first       what hosts run at the start, as plans name kernels
    """

    rack: Rack
    placements: Mapping[str, Placement]
    described: str
    kernels: Kernels | None = None
    first: str = ""
    reservation: Reservation | None = None

    @classmethod
    def for_points(cls, points: Iterable[Point], path: Path, wait_s: float = 0.0) -> InventoryTestbed:
        """wait_s: how long to wait for the turn of this run on its machines.

        Raises PlanError when the plan does not fit on the rack; TestbedError, naming every machine that can't be
        reached, is leased to somebody else or has an agent of another version.
        """
        rack = read_rack(path)
        points = list(points)
        topologies = {_key(point): point.topology for point in points}
        placements = {key: place(topology, rack) for key, topology in topologies.items()}
        if lacking := {error for point in points for error in lacking_generators(point, placements[_key(point)])}:
            raise PlanError("\n".join(f"{path}: {error}" for error in sorted(lacking)))
        used = {s.name: s for placement in placements.values() for s in placement.machines.values()}
        reservation = Reservation(rack, used.values(), holder(f"a run of {len(points)} points"), wait_s)
        reservation.take()
        try:
            return cls._checked(rack, placements, list(used.values()), points, reservation)
        except BaseException:
            reservation.close()
            raise

    @classmethod
    def _checked(
        cls,
        rack: Rack,
        placements: Mapping[str, Placement],
        machines: Sequence[Machine],
        points: Sequence[Point],
        reservation: Reservation,
    ) -> InventoryTestbed:
        descriptions = check(rack, machines, reservation.ticket)
        seen = {name: seen_in(description) for name, description in descriptions.items()}
        named: dict[str, set[str]] = {}
        for point in points:
            for name, kernel in _kernels(point, placements[_key(point)]).items():
                named.setdefault(name, set()).add(kernel)
        kernels = Kernels.for_run(rack, named, seen, reservation.ticket)
        first = {short(seen[name].release) for name in named}
        described = sorted(
            (name, description.version, seen[name].was or seen[name].release, description.kind)
            for name, description in descriptions.items()
        )
        digest = hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]
        return cls(rack, placements, digest, kernels, first.pop() if len(first) == 1 else "", reservation)

    def in_order(self, points: Sequence[Point]) -> Sequence[Point]:
        """Kernel by kernel, where points boot hosts."""
        return points if self.kernels is None else in_order(points, self.first)

    def end(self) -> None:
        """Hosts have the kernels that they had, and the next run its turn.

        Raises TestbedError with the hosts that do not.
        """
        try:
            if self.kernels is not None:
                self.kernels.end()
        finally:
            if self.reservation is not None:
                self.reservation.close()

    def code_key(self, point: Point) -> str:
        """Everything besides the point that determines its outcome: machines, kernels and agents."""
        placement = self.placements[_key(point)]
        where = json.dumps(placement.to_json(), sort_keys=True)
        if self.kernels is not None:
            where += json.dumps(sorted(self._releases(point, placement).items()))
        return f"rack-{self.described}-{hashlib.sha256(where.encode()).hexdigest()[:16]}"

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        """(the point as the rack got it, the outcome); what the agents wrote is fetched below workdir."""
        placement = self.placements[_key(point)]
        if lacking := placement.lacks_ipv6(point):
            return spec_of(point), Outcome(skip=f"{lacking} in {self.rack.path}")
        spec = spec_of(placement.placed(point))
        if self.reservation is not None:
            self.reservation.regain()
        if self.kernels is not None:
            self.kernels.ensure(_kernels(point, placement))
            releases, machines = self._releases(point, placement), placement.machines
            spec = with_short_names(spec, {host: releases[machines[host].name] for host in point.topology.hosts})
        ticket = self.reservation.ticket if self.reservation is not None else ""
        with RemoteAgents(self.rack, placement, holder(point.id), ticket) as agents:
            if wrong := clocks_apart(agents):
                raise TestbedError(wrong)

            def fetch(agent: str, task: str, files: Sequence[str]) -> None:
                for file in files:
                    agents.fetch(agent, task, file, workdir / agent / task)

            paths = RackPaths(spec, agents)

            def before() -> None:
                paths.probe()
                paths.compare_clocks()

            hooks = Hooks(fetch=fetch, before=before, after=paths.compare_clocks)
            outcome = outcome_of(PointRun(spec, agents, WallTime(), hooks))
            outcome.placement = placement.to_json()
            outcome.clocks = paths.clocks()
            outcome.drift += [*links_that_changed(workdir, agents), *agents.clock_steps(CLOCK_NS)]
        return spec, outcome

    def _releases(self, point: Point, placement: Placement) -> dict[str, str]:
        assert self.kernels is not None
        return {name: self.kernels.release(name, kernel) for name, kernel in _kernels(point, placement).items()}


def _kernels(point: Point, placement: Placement) -> dict[str, str]:
    """Machine of each host of a point → the kernel that the point names for it, or ""."""
    return {placement.machines[host].name: wanted(point, host) for host in point.topology.hosts}


def with_short_names(spec: PointSpec, releases: Mapping[str, str]) -> PointSpec:
    """Kernels as agents read them back, 6.12: that the release is the one of the plan is verified already.

    releases: of each host of the point
    """
    state = {
        entity: {name: short(releases[entity]) if name == "kernel" else value for name, value in values.items()}
        for entity, values in spec.state.items()
    }
    return replace(spec, state=state)


def lacking_generators(point: Point, placement: Placement) -> list[str]:
    """The errors for hosts whose agents may not run a generator of the point's flows."""
    flows = [(flow, placement.machines[host]) for flow in point.flows for host in flow.ends]
    return [
        f"{machine}: testctl_generators: want {flow.generator} among them, for flow {flow.name}; "
        f"got {', '.join(machine.generators) or 'none'}"
        for flow, machine in flows
        if flow.generator not in (*others.of_a_rack().values, *machine.generators)
    ]


def _key(point: Point) -> str:
    return json.dumps([point.topology.hosts, point.topology.switches, point.topology.links], sort_keys=True)


def clocks_apart(agents: RemoteAgents) -> str:
    """The error for a machine whose clock is too far from the controller's; "" if there is none."""
    for name, (offset_ns, error_ns) in sorted(agents.clocks_ns.items()):
        if abs(offset_ns) - error_ns > CLOCK_NS:
            return (
                f"{agents.machine(name)}: its clock is {offset_ns / 1e9:+.3f} s (give or take {error_ns / 1e9:.3f} s) "
                f"from the controller's; want it within {CLOCK_NS / 1e6:g} ms: set it by chrony or PTP"
            )
    return ""


def links_that_changed(workdir: Path, agents: RemoteAgents) -> list[str]:
    """Texts for the devices whose link went down or came up during the point."""
    return [
        f"{agents.machine(name)}: the link of {device} went down or came up {changes} times during the point"
        for name in agents.names
        for device, counted in read_counters(workdir / name).get("device", {}).items()
        if (changes := counted.get("carrier_changes"))
    ]


def check(rack: Rack, machines: Sequence[Machine], ticket: str = "") -> dict[str, pb.Description]:
    """Every machine's description of itself.  Raises TestbedError with the problems of all of them."""
    keys = read_keys(rack.keys)
    with ThreadPoolExecutor(max(len(machines), 1)) as pool:
        answers = list(pool.map(lambda machine: _described(machine, keys, ticket), machines))
    wrong = [answer for answer in answers if isinstance(answer, str)]
    if wrong:
        raise TestbedError("\n".join(wrong))
    return {s.name: a for s, a in zip(machines, answers, strict=True) if isinstance(a, pb.Description)}


def _described(machine: Machine, keys: Keys, ticket: str) -> pb.Description | str:
    """Its description, or the error: unreachable, another version, another name, missing device, leased."""
    with open_channel(machine, keys) as channel:
        stub = Stub(channel)
        try:
            description = describe(stub)
            facts = stub.Attest(pb.AttestRequest(), timeout=ANSWER_S).facts
            look(stub, holder("looking whether it is free"), ticket)
        except grpc.RpcError as error:
            return explain(str(machine), error)
    for what, want, got in (
        ("name", machine.name, description.name),
        ("kind", machine.kind, description.kind),
        ("version of the agent", version(machine.packages()), description.version),
    ):
        if want != got:
            return f"{machine}: {what}: want {want}; got {got}; deploy it again: ansible-playbook playbooks/deploy.yml"
    return lacking_device(machine, facts) or description


def lacking_device(machine: Machine, facts: Mapping[str, str]) -> str:
    """The error for a device of the inventory that a machine does not attest, or can't read; "" if there is none."""
    there = {fact.split()[1]: description for fact, description in sorted(facts.items()) if fact.startswith("link ")}
    for device in (machine.device, *machine.ports.values()):
        if device and device not in there:
            return f"{machine}: device: want {device}; got {', '.join(there)}; is the inventory that of the deployment?"
        if device and facts.get(f"link {device} mtu", "").startswith("can't"):
            return f"{machine}: device {device}: {facts[f'link {device} mtu']}"
    return ""


def restore(path: Path, wait_s: float) -> list[str]:
    """Restore every machine of a rack; yields a line for each, also for those that could not be restored.

    Waits up to wait_s for a lease that a controller left behind.  Raises TestbedError at the end when a
    machine could not be restored, after all others were.
    """
    rack = read_rack(path)
    keys = read_keys(rack.keys)
    machines = list(rack.machines.values())
    with ThreadPoolExecutor(len(machines)) as pool:
        ended = list(pool.map(lambda machine: _restored(machine, keys, wait_s), machines))
        restored = [machine for machine, (ok, _) in zip(machines, ended, strict=True) if ok]
        seen, _ = Booted(rack).reached(restored)
        left = [rack.machines[name] for name in seen if seen[name].was]  # by a killed run, in a kernel for one boot
        ended += pool.map(lambda machine: _booted_back(rack, machine, wait_s), left)
    lines = [line for _, line in ended]
    if failed := sum(not ok for ok, _ in ended):
        raise TestbedError("\n".join(lines) + f"\n{failed} not restored")
    return lines


def _booted_back(rack: Rack, machine: Machine, wait_s: float) -> tuple[bool, str]:
    """Boot a machine back, once nobody else has it."""
    machines, reservation = {machine.name: machine}, Reservation(rack, [machine], holder("restore"), wait_s)
    try:
        menu = menus(rack.path, machines)[machine.name]
        reservation.take()
        done = back(rack, machines, {machine.name: menu.was or menu.running}, reservation.ticket)
        return True, "\n".join(done) or f"{machine}: runs {menu.running}, which it is to have"
    except TestctlError as error:
        return False, str(error)
    finally:
        reservation.close()


def _restored(machine: Machine, keys: Keys, wait_s: float) -> tuple[bool, str]:
    until = time.monotonic() + wait_s
    with open_channel(machine, keys) as channel:
        stub = Stub(channel)
        while True:
            try:
                reply = _restored_alone(stub)
            except grpc.RpcError as error:
                if error.code() is HELD and time.monotonic() < until:
                    time.sleep(0.5)
                    continue
                return False, explain(str(machine), error)
            restored = ", ".join(f"{s.entity} {s.parameter}" for s in reply.restored)
            return True, f"{machine}: {f'restored {restored}' if restored else 'nothing was changed'}"


def _restored_alone(stub: Any) -> pb.RestoreReply:
    """Restore with a lease, which is released in any case."""
    request = pb.AcquireRequest(holder=holder("restore"), lifetime_ns=60 * 10**9)
    metadata = [(LEASE_KEY, stub.Acquire(request, timeout=ANSWER_S).token)]
    try:
        reply: pb.RestoreReply = stub.Restore(pb.RestoreRequest(), timeout=60, metadata=metadata)
        return reply
    finally:
        with suppress(grpc.RpcError):
            stub.Release(pb.ReleaseRequest(), timeout=60, metadata=metadata)
