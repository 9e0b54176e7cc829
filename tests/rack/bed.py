# SPDX-License-Identifier: Apache-2.0
"""A rack whose agents are processes of the test: started, killed, slowed and unplugged one by one (root).

The network, the inventory and the certificates are those of tools/rack; there is no SSH in it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from testctl.rack import inventory, network
from testctl.rack.plan import Rack, Room, plan
from testctl.testbeds.agents import new_stub
from testctl.testbeds.channels import open_channel, read_keys
from testctl.testbeds.rack import read_rack
from testctl_agent.wire import agent_pb2 as pb

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
  - [switch, fate, "drop data 100-103 of bulk, first"]
  - [bulk, bytes, 2MB]
"""
POINTS = 2
READY_S = 30.0


class Bed:
    """The rack, and what a test does to it.  hosts: alpha, beta; the switch: s1."""

    def __init__(self, rack: Rack, where: Path) -> None:
        self.rack = rack
        self.where = where
        self.inventory = rack.state / "inventory"
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.plan = where / "plan.yaml"
        self.plan.write_text(PLAN, encoding="utf-8")

    def room(self, name: str) -> Room:
        return next(room for room in self.rack.rooms if room.name == name)

    def listens(self, name: str) -> str:
        return f"{self.room(name).management}:7400"

    def config(self, name: str, **changes: Any) -> Path:
        """The file of an agent, as a deployment writes it."""
        room, keys, home = self.room(name), self.rack.state / "keys", self.where / name
        home.mkdir(exist_ok=True)
        devices = {name: next(iter(room.devices), "")}
        if room.kind == "switch":
            devices = {f"{name}:{host.name}": port for host in self.rack.hosts for port in host.devices.values()}
        found = {
            "name": name,
            "kind": room.kind,
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
        if room.kind == "switch":
            found |= {
                "backend": "ebpf",
                "forwarding": {host.mac: port for host in self.rack.hosts for port in host.devices.values()},
            }
        path = home / "agent.json"
        path.write_text(json.dumps(found | changes), encoding="utf-8")
        return path

    def start(self, name: str, *before: str, **changes: Any) -> None:
        """Start an agent, behind the words of another program if there are any, and wait until it is ready."""
        argv = ["ip", "netns", "exec", self.room(name).namespace, *before]
        argv += [sys.executable, "-m", "testctl_agent", "serve", "--config", str(self.config(name, **changes))]
        with (self.where / f"{name}.log").open("ab") as log:
            self.agents[name] = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
        out = self.agents[name].stdout
        assert out is not None
        assert out.readline() == b"ready\n", self.log(name)

    def log(self, name: str) -> str:
        return (self.where / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End an agent and wait for that."""
        process = self.agents.pop(name)
        process.send_signal(how)
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()

    def attest(self) -> dict[str, dict[str, str]]:
        """What every station is now, as its agent says."""
        found = read_rack(self.inventory)
        keys = read_keys(found.keys)
        said = {}
        for name, station in found.stations.items():
            with open_channel(station, keys) as channel:
                said[name] = dict(new_stub(channel).Attest(pb.AttestRequest(), timeout=20).facts)
        return said

    def unplug(self, name: str, device: str, up: bool = False) -> None:
        subprocess.run(
            ["ip", "-n", self.room(name).namespace, "link", "set", device, "up" if up else "down"], check=True
        )

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "testctl.cli.main", *words]

    def run(self, *words: str, plan: Path | None = None) -> subprocess.Popen[str]:
        """`testctl run` on this rack, begun."""
        argv = self.command("run", str(plan or self.plan), "--testbed", str(self.inventory), *words)
        return subprocess.Popen(
            argv, cwd=self.where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"TESTCTL_CALLS": str(self.where / "calls"), "COLUMNS": "200"},
        )  # fmt: skip

    def ends(self, process: subprocess.Popen[str], code: int, timeout_s: float = 180.0) -> str:
        """What a run said; it must end with this code."""
        said, _ = process.communicate(timeout=timeout_s)
        assert process.returncode == code, said
        return said

    def whole(self, *words: str) -> dict[str, Any]:
        """A run that passes; its summary.  Every point is there once."""
        self.ends(self.run(*words), 0)
        newest = (self.where / "results" / "latest").resolve()
        summary: dict[str, Any] = json.loads((newest / "summary.json").read_text(encoding="utf-8"))
        assert [point["verdict"] for point in summary["points"]] == ["pass"] * POINTS
        assert len({point["id"] for point in summary["points"]}) == POINTS
        assert len(list((newest / "points").iterdir())) == POINTS
        return summary

    def when(self, call: str, process: subprocess.Popen[str], timeout_s: float = 60.0) -> bool:
        """Wait until a call was made ("sender Apply begins"); whether it was, before the run's end."""
        calls = self.where / "calls"
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if calls.exists() and f" {call}\n" in calls.read_text(encoding="utf-8"):
                return True
            if process.poll() is not None:
                return False
            time.sleep(0.002)
        return False

    def forget_calls(self) -> None:
        (self.where / "calls").unlink(missing_ok=True)


@contextmanager
def bed(where: Path) -> Iterator[Bed]:
    """A rack with three running agents; everything goes with it."""
    rack = plan(where / "state", 2)
    rack.state.mkdir(parents=True)
    network.up(rack)
    try:
        inventory.write(rack)
        made = Bed(rack, where)
        try:
            for room in rack.rooms:
                made.start(room.name)
            yield made
        finally:
            for name in list(made.agents):
                with suppress(subprocess.TimeoutExpired, ProcessLookupError):
                    made.kill(name, signal.SIGTERM)
    finally:
        network.down()


def eventually(true: Callable[[], bool], timeout_s: float = 60.0) -> bool:
    until = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
