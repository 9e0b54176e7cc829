# SPDX-License-Identifier: Apache-2.0
"""A rack whose agents are processes of the test: started, killed, slowed and unplugged one by one (root).

The network, the inventory and the certificates are those of plugins/rack/tools/rack; there is no SSH in it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from simulated_rack import inventory, network
from simulated_rack.plan import Node, SimulatedRack, plan
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError
from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import Rack, read_rack
from testctl_rack.mtls import Keys, open_channel, read_keys
from testctl_rack.rack import check

from plugins.rack.tests.rack.abandoned import owned, remove_abandoned

PLAN = """
about: two congestion controls between two hosts of a rack
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, cc, [cubic, reno]]
  - [hosts, net.ipv4.tcp_sack, 0]
  - [all, mtu, 1400]
  - [hosts, tso, on]
  - [hosts, gro, off]
  - [hosts, capture, off]
  - [switch, fate, "drop data 100-103 of bulk, first"]
  - [bulk, bytes, 2MB]
"""
POINTS = 2
READY_S = 120.0


class Bed:
    """The rack, and what a test does to it.  hosts: alpha, beta, …; the switch: s1."""

    def __init__(self, rack: SimulatedRack, where: Path) -> None:
        self.rack = rack
        self.where = where
        self.inventory = rack.state / "inventory"
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.odd: set[str] = set()
        """Agents that are not as a deployment starts them."""
        self.runs: list[subprocess.Popen[str]] = []
        self._seen = 0  # characters of the file of calls
        self.plan = where / "plan.yaml"
        self.plan.write_text(PLAN, encoding="utf-8")

    def node(self, name: str) -> Node:
        return next(node for node in self.rack.nodes if node.name == name)

    def listens(self, name: str) -> str:
        return f"{self.node(name).management}:7400"

    def config(self, name: str, **changes: Any) -> Path:
        """The file of an agent, as a deployment writes it."""
        node, keys, home = self.node(name), self.rack.state / "keys", self.where / name
        home.mkdir(exist_ok=True)
        devices = {name: next(iter(node.devices), "")}
        if node.kind == "switch":
            devices = {f"{name}:{host.name}": port for host in self.rack.hosts for port in host.devices.values()}
        found = {
            "name": name,
            "kind": node.kind,
            "devices": devices,
            "listen": self.listens(name),
            "workdir": str(home / "work"),
            "journal": str(home / "journal.jsonl"),
            "tls": {
                "authority": str(keys / "ca.crt"),
                "certificate": str(keys / f"{name}.crt"),
                "key": str(keys / f"{name}.key"),
                "controllers": ["controller"],
            },
        }
        if node.kind == "switch":
            found |= {
                "backend": "ebpf",
                "forwarding": {host.mac: port for host in self.rack.hosts for port in host.devices.values()},
            }
        path = home / "agent.json"
        path.write_text(json.dumps(found | changes), encoding="utf-8")
        return path

    def start(self, name: str, *before: str, **changes: Any) -> None:
        """Start an agent, behind the words of another program if there are any, and wait until it is ready."""
        argv = ["ip", "netns", "exec", self.node(name).namespace, *before]
        argv += [sys.executable, "-m", "testctl_agent", "serve", "--config", str(self.config(name, **changes))]
        with (self.where / f"{name}.log").open("ab") as log:
            agent = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
        self.agents[name] = agent
        if before or changes:
            self.odd.add(name)
        assert agent.stdout is not None
        if agent.stdout.readline() != b"ready\n":
            self.kill(name)
            raise AssertionError(self.log(name))

    def log(self, name: str) -> str:
        return (self.where / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End an agent and wait for that."""
        process = self.agents.pop(name)
        self.odd.discard(name)
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(120)
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()

    @cached_property
    def _read(self) -> tuple[Rack, Keys]:
        found = read_rack(self.inventory)
        return found, read_keys(found.keys)

    def hosts(self) -> Rack:
        """The rack as the controller reads it, without the switch."""
        found = self._read[0]
        return replace(found, machines={node.name: found.machines[node.name] for node in self.rack.hosts})

    def attest(self) -> dict[str, dict[str, str]]:
        """The present attestation of every machine."""
        found, keys = self._read
        said = {}
        for name, machine in found.machines.items():
            with open_channel(machine, keys) as channel:
                said[name] = dict(Stub(channel).Attest(pb.AttestRequest(), timeout=120).facts)
        return said

    def is_free(self) -> bool:
        """Whether every agent answers and is leased to nobody."""
        try:
            check(self._read[0], list(self._read[0].machines.values()))
        except TestbedError as error:
            if "leased to" not in str(error):
                raise
            return False
        return True

    def restore_rack(self) -> None:
        """Whatever a test left: no run, every link up, the agents those of a deployment, no lease, no results."""
        for process in self.runs:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=120)
        self.runs.clear()
        for node in self.rack.nodes:
            for device in ("mgmt", *node.devices):
                self.unplug(node.name, device, up=True)
        self.restart_agents()
        assert eventually(self.is_free)
        shutil.rmtree(self.where / "results", ignore_errors=True)

    def restart_agents(self) -> None:
        """Agents as a deployment starts them, all running."""
        for node in self.rack.nodes:
            agent = self.agents.get(node.name)
            if agent and (node.name in self.odd or agent.poll() is not None):
                self.kill(node.name)
            elif agent:
                agent.send_signal(signal.SIGCONT)
            if node.name not in self.agents:
                self.start(node.name)

    def unplug(self, name: str, device: str, up: bool = False) -> None:
        subprocess.run(
            ["ip", "-n", self.node(name).namespace, "link", "set", device, "up" if up else "down"], check=True
        )

    def other_inventory(self, **changes: Mapping[str, Any]) -> Path:
        """The inventory with other variables of some machines."""
        other = self.inventory.with_name("other")
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(self.inventory, other)
        groups = yaml.safe_load((other / "hosts.yaml").read_text(encoding="utf-8"))
        for group in groups.values():
            for name in group["hosts"].keys() & changes.keys():
                group["hosts"][name] |= changes[name]
        (other / "hosts.yaml").write_text(yaml.safe_dump(groups), encoding="utf-8")
        return other

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "testctl.cli.main", *words]

    def run(
        self,
        *words: str,
        plan: Path | None = None,
        inventory: Path | None = None,
        lease_s: float = 10.0,
        call_s: float = 120.0,
        command: str = "run",
    ) -> subprocess.Popen[str]:
        """`testctl run`, or another command that runs a plan, on this rack, begun."""
        calls = self.where / "calls"
        self._seen = len(calls.read_text(encoding="utf-8")) if calls.exists() else 0
        argv = self.command(command, str(plan or self.plan), "--testbed", str(inventory or self.inventory), *words)
        process = subprocess.Popen(
            argv, cwd=self.where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"TESTCTL_CALLS": str(calls), "TESTCTL_LEASE_S": str(lease_s),
                              "TESTCTL_CALL_S": str(call_s), "COLUMNS": "200"},
        )  # fmt: skip
        self.runs.append(process)
        return process

    def ends(self, process: subprocess.Popen[str], *codes: int, timeout_s: float = 180.0) -> str:
        """The output of a run, which must end with one of these codes."""
        said, _ = process.communicate(timeout=timeout_s)
        self.runs.remove(process)
        assert process.returncode in codes, said
        assert "Traceback" not in said, said
        return said

    def whole(self, *words: str, points: int = POINTS, plan: Path | None = None) -> dict[str, Any]:
        """A run that passes; its summary.  Every point is there once."""
        self.ends(self.run(*words, plan=plan), 0)
        summary = self.summary()
        assert [point["verdict"] for point in summary["points"]] == ["pass"] * points
        assert len({point["id"] for point in summary["points"]}) == points
        assert len(list((self.where / "results" / "latest" / "points").iterdir())) == points
        return summary

    def summary(self) -> dict[str, Any]:
        """That of the newest run that ended."""
        path = self.where / "results" / "latest" / "summary.json"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def reaches(self, call: str, process: subprocess.Popen[str], timeout_s: float = 120.0) -> None:
        """Wait until the run makes a call ("sender Apply begins") after those that were waited for before."""
        calls, until = self.where / "calls", time.monotonic() + timeout_s
        while time.monotonic() < until:
            text = calls.read_text(encoding="utf-8") if calls.exists() else ""
            if (at := text.find(f" {call}\n", self._seen)) >= 0:
                self._seen = at + 1
                return
            assert process.poll() is None, f"{call}: {process.communicate()[0]}"
            time.sleep(0.002)
        raise AssertionError(f"{call}: not within {timeout_s:g} s")


@contextmanager
def bed(where: Path, hosts: int = 2) -> Iterator[Bed]:
    """A rack with running agents; everything goes with it.  Raises TestbedError where another rack is up."""
    rack = plan(where / "state", hosts)
    remove_abandoned()
    network.refuse(rack)
    owned(rack.state)
    rack.state.mkdir(parents=True)
    try:
        network.up(rack)
        inventory.write(rack)
        made = Bed(rack, where)
        try:
            for node in rack.nodes:
                made.start(node.name)
            yield made
        finally:
            for process in made.runs:
                process.kill()
                process.communicate(timeout=120)
            for name in list(made.agents):
                with suppress(subprocess.TimeoutExpired):
                    made.kill(name, signal.SIGTERM)
    finally:
        network.down()


def eventually(true: Callable[[], bool], timeout_s: float = 120.0) -> bool:
    until = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
