# SPDX-License-Identifier: Apache-2.0
"""What a rack of machines consists of, by number of hosts: names, NICs, addresses, files.  Changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path

from simulated_rack.plan import NAMES, SWITCH, network_of
from testctl_agent.spec.errors import PlanError, TestbedError

PREFIX = "mrack-"
"""Of each device on the controller's side: what begins so is a rack of machines."""
BRIDGE = f"{PREFIX}mgmt"
MANAGEMENT = "198.19.71.0/24"
PORT = 7400
LONGEST_PATH = 100
"""Bytes of the path of a socket, of which Linux takes 107."""
DESCRIPTION = "machines.json"


@dataclass(frozen=True)
class Nic:
    """A network device of a machine.

    model    as QEMU names it
    address  with its prefix length; "" for a port of the switch
    peer     the other end of its cable, MACHINE-DEVICE; "": in the management network
    """

    device: str
    mac: str
    model: str
    address: str = ""
    peer: str = ""


@dataclass(frozen=True)
class Machine:
    """One host or the switch: a QEMU, and a directory of its own.

    clock_s  how far its clock is ahead when it is switched on
    """

    name: str
    kind: str
    nics: tuple[Nic, ...]
    clock_s: float = 0.0

    @property
    def management(self) -> str:
        return self.nics[0].address.partition("/")[0]

    @property
    def test(self) -> Nic:
        """A host's device in the test network."""
        return self.nics[1]

    @property
    def tap(self) -> str:
        return PREFIX + self.name


@dataclass(frozen=True)
class MachineRack:
    """All machines, and the directory with all that belongs to the rack.

    image  directory of the image (machine_rack/image.py)
    accel  "kvm" or "tcg"
    """

    state: Path
    management: IPv4Network
    machines: tuple[Machine, ...]
    image: Path
    accel: str
    memory_mb: int = 640

    @property
    def controller(self) -> str:
        """The address of this machine in the management network."""
        return str(self.management[1])

    @property
    def hosts(self) -> tuple[Machine, ...]:
        return tuple(one for one in self.machines if one.kind == "host")

    @property
    def switch(self) -> Machine:
        return next(one for one in self.machines if one.kind == "switch")

    def of(self, name: str) -> Machine:
        """A machine by its name.  Raises PlanError."""
        found = next((one for one in self.machines if one.name == name), None)
        if found is None:
            raise PlanError(f"rack: want one of {', '.join(one.name for one in self.machines)}; got {name!r}")
        return found

    def dir(self, machine: Machine) -> Path:
        return self.state / "machines" / machine.name

    def socket(self, end: str) -> Path:
        """The socket of one end of a cable, MACHINE-DEVICE."""
        return self.state / "net" / end

    def save(self) -> None:
        content = asdict(self) | {
            "state": str(self.state),
            "management": str(self.management),
            "image": str(self.image),
        }
        (self.state / DESCRIPTION).write_text(json.dumps(content, indent=1), encoding="utf-8")


def load(state: Path) -> MachineRack:
    """The rack of a directory.  Raises TestbedError where there is none."""
    try:
        found = json.loads((state / DESCRIPTION).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TestbedError(
            f"rack: want the directory of a rack of machines; got {state} (plugins/rack/tools/rack up)"
        ) from error
    machines = tuple(Machine(**(one | {"nics": tuple(Nic(**nic) for nic in one["nics"])})) for one in found["machines"])
    changed = {"state": state, "management": IPv4Network(found["management"]), "image": Path(found["image"])}
    return MachineRack(**(found | changed | {"machines": machines}))


def plan(
    state: Path, hosts: int, image: Path, accel: str, management: str = MANAGEMENT, clocks: Mapping[str, float] = {}
) -> MachineRack:
    """A rack of so many hosts around one switch.  Raises PlanError."""
    network = network_of(hosts, management, MANAGEMENT)
    names = NAMES[:hosts]
    if unknown := clocks.keys() - {*names, SWITCH}:
        raise PlanError(f"rack: --clock: want one of {', '.join((*names, SWITCH))}; got {', '.join(sorted(unknown))}")

    def mgmt(number: int) -> Nic:
        return Nic(
            "mgmt", f"02:00:00:01:00:{number:02x}", "virtio-net-pci", f"{network[10 + number]}/{network.prefixlen}"
        )

    machines = [
        Machine(
            name, "host",
            (mgmt(number), Nic("eth1", f"02:00:00:00:00:{number:02x}", "e1000e", f"10.20.0.{number}/16",
                               f"{SWITCH}-p{number}")),
            clocks.get(name, 0.0),
        )
        for number, name in enumerate(names, 1)
    ]  # fmt: skip
    ports = tuple(
        Nic(f"p{number}", f"02:00:00:02:00:{number:02x}", "e1000e", "", f"{name}-eth1")
        for number, name in enumerate(names, 1)
    )
    switch = Machine(SWITCH, "switch", (mgmt(0), *ports), clocks.get(SWITCH, 0.0))
    rack = MachineRack(state, network, (*machines, switch), image, accel)
    longest = max((str(rack.socket(f"{one.name}-{nic.device}")) for one in rack.machines for nic in one.nics), key=len)
    if len(longest) > LONGEST_PATH:
        raise PlanError(f"rack: want --state such that sockets have at most {LONGEST_PATH} bytes; got {longest}")
    return rack
