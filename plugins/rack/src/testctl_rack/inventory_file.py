# SPDX-License-Identifier: Apache-2.0
"""A rack: the hosts and switches of an Ansible inventory, and how they are cabled.

Ansible itself reads the inventory, so group_vars, host_vars and every format of it work.  Of its
variables these count:

    testctl_hosts, testctl_switches   groups
    testctl_listen    where the agent listens, "192.0.2.11:7400"
    testctl_device    a host's device on the test network
    testctl_address   its IPv4 address there
    testctl_address6  its IPv6 address there (optional: for flows over IPv6)
    testctl_mac       the device's MAC address
    testctl_ports     a switch's cables: {host at the other end: device}
    testctl_backend   what a switch forwards with (optional here; the playbooks need it)
    testctl_bfrt, testctl_sde  what the playbooks need for the back end tofino
    testctl_generators   a host's generators that are not the agent's own (optional)
    testctl_keys      directory with ca.crt, controller.crt and controller.key (default: ../NAME.keys)
    testctl_entity    the plan's name for it, when names alone do not say (optional)
    testctl_power_on, testctl_power_off, testctl_power_cycle, testctl_console
                      commands of the controller that switch its power and print its console's last lines (optional)
    testctl_out_of_service   why nobody is to use it (optional)
    testctl_wheelhouse   what the playbooks install from (optional)

A variable of another name that begins with testctl_ is refused.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testctl.system.subprocesses import run
from testctl_agent.params import others
from testctl_agent.params.words import Word
from testctl_agent.spec.errors import PlanError, TestbedError, TestctlError

from testctl_rack import ansible

GROUPS = {"testctl_hosts": "host", "testctl_switches": "switch"}
VARIABLES = frozenset({
    "testctl_address", "testctl_address6", "testctl_backend", "testctl_bfrt", "testctl_console", "testctl_device",
    "testctl_entity", "testctl_generators", "testctl_keys", "testctl_listen", "testctl_mac", "testctl_out_of_service",
    "testctl_ports", "testctl_power_cycle", "testctl_power_off", "testctl_power_on", "testctl_sde",
    "testctl_wheelhouse",
})  # fmt: skip
COMMANDS = ("power_on", "power_off", "power_cycle", "console")
KEY_FILES = ("ca.crt", "controller.crt", "controller.key")
_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_PORT = re.compile(r"[0-9.]+:([0-9]{1,5})")


@dataclass(frozen=True)
class Machine:
    """A host or a switch of the rack.

    device, address, mac  of a host, on the test network
    address6              its IPv6 address there, if the inventory gives one
    ports                 of a switch: who is at the other end → device
    entity                the plan's name for it, if the inventory gives one
    backend, generators   of a switch, of a host: what its agent's configuration names
    commands              "power_on", "power_off", "power_cycle", "console" → the argv of a command of the controller
    out_of_service        the reason why nobody is to use it; "" when everybody may
    """

    name: str
    kind: str
    listen: str
    device: str = ""
    address: str = ""
    mac: str = ""
    ports: Mapping[str, str] = field(default_factory=dict)
    entity: str = ""
    backend: str = ""
    generators: tuple[str, ...] = ()
    address6: str = ""
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    out_of_service: str = ""

    def __str__(self) -> str:
        """As errors name it: "host alpha (192.0.2.11:7400)"."""
        return f"{self.kind} {self.name} ({self.listen})"

    def packages(self) -> tuple[str, ...]:
        """The packages of other distributions that its agent runs, which its version covers."""
        return others.packages(self.generators, self.backend)


@dataclass(frozen=True)
class Rack:
    """All machines by name; keys: the directory of the controller's certificate."""

    path: Path
    machines: Mapping[str, Machine]
    keys: Path

    def of_kind(self, kind: str) -> list[Machine]:
        return [machine for machine in self.machines.values() if machine.kind == kind]

    def linked(self, a: str, b: str) -> bool:
        """Whether a cable connects two machines."""
        return b in self.machines[a].ports or a in self.machines[b].ports


def read_rack(path: Path) -> Rack:
    """The rack of an inventory (a directory or a file).

    Raises PlanError with every problem, each with the machine and the variable.
    """
    if not path.exists():
        raise PlanError(
            f"--testbed {path}: want lab, netns, or an Ansible inventory; there is no such file or directory"
        )
    call = ansible.call("ansible-inventory", path)
    if call is None:
        raise PlanError(f"--testbed {path}: ansible-inventory is not there: make setup installs it in .venv")
    try:
        listed = json.loads(run([*call.argv, "--list"], env=call.env, cwd=call.cwd))
    except TestbedError as error:
        raise PlanError(f"--testbed {path}: want an Ansible inventory; {error}") from error
    except ValueError as error:
        raise PlanError(f"{path}: ansible-inventory did not print JSON: {error}") from error
    return rack_of(listed, path)


def rack_of(listed: Mapping[str, Any], path: Path) -> Rack:
    """The rack in what `ansible-inventory --list` printed.  Raises PlanError as read_rack does."""
    problems: list[str] = []
    variables = listed.get("_meta", {}).get("hostvars", {})
    machines: dict[str, Machine] = {}
    for group, kind in GROUPS.items():
        for name in _members(listed, group):
            if name in machines:
                problems.append(f"{name}: want it in one of {', '.join(GROUPS)}; got both")
            values = variables.get(name, {})
            problems += _unknown(name, values)
            machines[name] = replace(
                _machine(name, kind, values, problems), commands=_commands(name, values, problems),
                out_of_service=str(values.get("testctl_out_of_service") or ""),
            )  # fmt: skip
    if not machines:
        problems.append(f"want hosts in the groups {' and '.join(GROUPS)}; got none")
    problems += _cables(machines)
    problems += _twice(machines, "listen") + _twice(machines, "address") + _twice(machines, "mac")
    problems += _twice(machines, "address6")
    base = path if path.is_dir() else path.parent
    own = f"../{base.absolute().name}.keys"
    keys = {str(values.get("testctl_keys") or own) for name, values in variables.items() if name in machines}
    if len(keys) > 1:
        problems.append(f"testctl_keys: want one directory for all; got {', '.join(sorted(keys))}")
    if problems:
        raise PlanError("\n".join(f"{path}: {problem}" for problem in problems))
    return Rack(path, machines, base / keys.pop())


def _members(listed: Mapping[str, Any], group: str) -> list[str]:
    """The hosts of a group and of the groups in it."""
    content = listed.get(group, {})
    names = list(content.get("hosts", []))
    for child in content.get("children", []):
        names += _members(listed, child)
    return list(dict.fromkeys(names))


def _unknown(name: str, values: Mapping[str, Any]) -> list[str]:
    """The problems of unknown variables: each is refused, because a misspelt one would have no effect."""
    problems = []
    for variable in sorted(values):
        if variable.startswith("testctl_") and variable not in VARIABLES:
            names = [known.removeprefix("testctl_") for known in VARIABLES]
            close = difflib.get_close_matches(variable.removeprefix("testctl_"), names, n=1)
            hint = f"did you mean testctl_{close[0]}?" if close else f"there are {', '.join(sorted(VARIABLES))}"
            problems.append(f"{name}: {variable}: want a variable of testctl's; {hint}")
    return problems


def _machine(name: str, kind: str, values: Mapping[str, Any], problems: list[str]) -> Machine:
    def text(variable: str) -> str:
        got = values.get(f"testctl_{variable}", "")
        if not isinstance(got, str) or not got:
            problems.append(f"{name}: testctl_{variable}: want a text; got {got!r}")
            return ""
        return got

    listen = text("listen")
    port = _PORT.fullmatch(listen)
    if listen and not (port and 0 < int(port[1]) < 65536):
        problems.append(f"{name}: testctl_listen: want ADDRESS:PORT, the address of IPv4; got {listen!r}")
    entity = str(values.get("testctl_entity") or "")
    try:
        backend, generators = software(kind, name, values)
    except PlanError as error:
        problems.append(str(error))
        backend, generators = "", ()
    if kind == "switch":
        ports = values.get("testctl_ports", {})
        if not isinstance(ports, dict) or not all(isinstance(device, str) for device in ports.values()):
            problems.append(f"{name}: testctl_ports: want {{who is at the other end: device}}; got {ports!r}")
            ports = {}
        ports = {str(to): device for to, device in ports.items()}
        return Machine(name, kind, listen, ports=ports, entity=entity, backend=backend)
    address, mac = text("address"), text("mac").lower()
    try:
        ipaddress.IPv4Address(address or "0.0.0.0")
    except ValueError:
        problems.append(f"{name}: testctl_address: want an IPv4 address; got {address!r}")
    if mac and not _MAC.fullmatch(mac):
        problems.append(f"{name}: testctl_mac: want six bytes such as 02:00:00:00:00:01; got {mac!r}")
    return Machine(
        name, kind, listen, text("device"), address, mac, entity=entity, generators=generators,
        address6=_address6(name, values, problems),
    )  # fmt: skip


def _commands(name: str, values: Mapping[str, Any], problems: list[str]) -> dict[str, tuple[str, ...]]:
    """The argv of each command of a machine's variables; they are started without a shell."""
    commands = {}
    for what in COMMANDS:
        given = values.get(f"testctl_{what}", "")
        try:
            argv = tuple(shlex.split(given)) if isinstance(given, str) else ()
        except ValueError:
            argv = ()
        if argv:
            commands[what] = argv
        elif given != "":
            got = "quotes without an end" if isinstance(given, str) else type(given).__name__  # no word: see power.py
            problems.append(f"{name}: testctl_{what}: want the words of a command; got {got}")
    return commands


def _address6(name: str, values: Mapping[str, Any], problems: list[str]) -> str:
    """Of a host's variables, in its shortest form; "" where it has none."""
    given = values.get("testctl_address6", "")
    try:
        return str(ipaddress.IPv6Address(given)) if given else ""
    except ValueError:
        problems.append(f"{name}: testctl_address6: want an IPv6 address; got {given!r}")
        return ""


def software(kind: str, name: str, values: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """(back end, generators) that the variables of a machine name.  Raises PlanError: who, wanted, got."""

    def known(variable: str, kind_of_word: Word, value: object) -> str:
        try:
            return str(kind_of_word.parse(value))
        except ValueError as error:
            raise PlanError(f"{name}: {variable}: {error}") from error

    if kind == "switch":
        backend = values.get("testctl_backend", "")
        return known("testctl_backend", others.backend(), backend) if backend else "", ()
    generators = values.get("testctl_generators", [])
    if not isinstance(generators, list):
        raise PlanError(f"{name}: testctl_generators: want a list of generators; got {generators!r}")
    return "", tuple(known("testctl_generators", others.of_a_rack(), generator) for generator in generators)


def _cables(machines: Mapping[str, Machine]) -> list[str]:
    """Problems of switches' ports.  A switch's agent is given what is behind a port by deploy.yml: a host alone."""
    hosts = [machine.name for machine in machines.values() if machine.kind == "host"]
    wrong = [
        f"{machine.name}: testctl_ports: want hosts, of {', '.join(hosts)}, at the other end; got {to}"
        + (", a switch: for plans with joined switches take the lab or netns" if to in machines else "")
        for machine in machines.values()
        for to in machine.ports
        if to not in hosts
    ]
    return wrong + [
        f"{machine.name}: testctl_ports: want a device for each; got {', '.join(machine.ports.values())}"
        for machine in machines.values()
        if len(set(machine.ports.values())) < len(machine.ports)
    ]


def _twice(machines: Mapping[str, Machine], what: str) -> list[str]:
    """Machines that share a value that must be unique."""
    owners: dict[str, list[str]] = {}
    for machine in machines.values():
        if value := getattr(machine, what):
            owners.setdefault(value, []).append(machine.name)
    return [
        f"testctl_{what} {value}: {' and '.join(names)} have it" for value, names in owners.items() if len(names) > 1
    ]


def main(arguments: list[str]) -> int:
    """Read an inventory for the playbooks, which contact its hosts only afterwards."""
    try:
        read_rack(Path(arguments[0]))
    except TestctlError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
