# SPDX-License-Identifier: Apache-2.0
"""A rack of machines for tests: what a person does to it, by tools/rack, ansible-playbook, ssh and testctl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import yaml
from machine_rack import network
from machine_rack.plan import MachineRack, load
from simulated_rack.changes import BACKUPS
from testctl_agent.daemon import LEASE_KEY
from testctl_agent.daemon import agent_pb2 as pb
from testctl_rack.grpc_agents import Stub
from testctl_rack.inventory_file import read_rack
from testctl_rack.mtls import open_channel, read_keys

from tests.playbooks import PLAYBOOKS, ROOT, Done, play, run

MANAGEMENT = "198.18.79.0/24"  # of those for tests of networks; not the default
FILES = (
    "find / -xdev ( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log"
    " -o -path /var/cache -o -path /var/lib/chrony -o -path /var/lib/apt -o -path /var/lib/systemd"
    " -o -path /srv/packages ) -prune -o -not -type d -printf '%p %M %u %g %s %l\\n'"
    " -o -type d -printf '%p %M %u %g\\n'"
)
"""Files of a machine with mode, owner, size and what a link leads to; not those that change by themselves."""


@dataclass
class Machines:
    """A rack that is up, below a directory of a test's own."""

    state: Path
    where: Path
    runs: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def rack(self) -> MachineRack:
        return load(self.state)

    @property
    def inventory(self) -> Path:
        return self.state / "inventory"

    def tool(self, what: str, *words: str) -> Done:
        return run([str(ROOT / "plugins" / "rack" / "tools" / "rack"), what, *words, "--state", str(self.state)])

    def play(self, name: str, *words: str, inventory: Path | None = None) -> Done:
        return play("-i", str(inventory or self.inventory), str(PLAYBOOKS / f"{name}.yml"), *words)

    def ssh(self, name: str, *words: str, timeout_s: float = 120.0) -> Done:
        """A command on a machine, as Ansible reaches it."""
        return run([*self._ssh(name), *words], timeout_s)

    def _ssh(self, name: str) -> list[str]:
        rack, known = self.rack, self.state / "ssh" / "known_hosts"
        options = ["-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-i",
                   str(rack.image / "id"), "-o", f"UserKnownHostsFile={known}"]  # fmt: skip
        return ["ssh", "-F", "none", *options, f"root@{rack.of(name).management}"]

    def send(self, name: str, base: Path, files: Iterable[str], to: str) -> None:
        """Files and directories below `base` to a directory of a machine, with mode and time."""
        listed = self.where / "listed"
        listed.write_text("".join(f"{one}\n" for one in files), encoding="utf-8")
        with subprocess.Popen(["tar", "-C", str(base), "-cf", "-", "-T", str(listed)], stdout=subprocess.PIPE) as tar:
            unpack = f"mkdir -p {to} && tar -C {to} --no-same-owner -xf -"
            done = subprocess.run([*self._ssh(name), unpack], stdin=tar.stdout, capture_output=True, check=False)
        assert (tar.returncode, done.returncode) == (0, 0), done.stderr.decode()

    def files(self, name: str) -> list[str]:
        """Each file of a machine, but for those that change by themselves."""
        done = self.ssh(name, FILES.replace("(", "\\(").replace(")", "\\)"))
        assert done.code == 0, done.said
        return sorted(line for line in done.said.splitlines() if line.split(" ")[0] not in BACKUPS)

    def cut(self, name: str) -> None:
        """Cut the power, and give it back."""
        done = self.tool("cycle", name)
        assert done.code == 0, done.said

    def plug(self, name: str, up: bool) -> None:
        """The cable to the management network."""
        network.plug(self.rack.of(name), up)

    def channel(self, name: str) -> grpc.Channel:
        """To an agent, as a controller opens it."""
        found = read_rack(self.inventory)
        return open_channel(found.machines[name], read_keys(found.keys))

    def attest(self, name: str) -> dict[str, str]:
        with self.channel(name) as channel:
            return dict(Stub(channel).Attest(pb.AttestRequest(), timeout=120).facts)

    def clock_state(self, name: str) -> dict[str, Any]:
        """What keeps a machine's clock, as its agent reports it."""
        with self.channel(name) as channel:
            stub = Stub(channel)
            lease = stub.Acquire(pb.AcquireRequest(holder="a test", lifetime_ns=60 * 10**9), timeout=60)
            sent = {"metadata": [(LEASE_KEY, lease.token)], "timeout": 60}
            request = pb.StartRequest(task="clock", kind="collector", name="clock")
            request.options["side"].text = "state"
            stub.Start(request, **sent)
            status = stub.Wait(pb.WaitRequest(task="clock", timeout_ns=30 * 10**9), **sent)
            stub.Release(pb.ReleaseRequest(), **sent)
        assert status.ok, status.error
        state: dict[str, Any] = json.loads(status.result)["state"]
        return state

    def answers(self, *names: str) -> None:
        """Wait until agents answer."""
        for name in names or [one.name for one in self.rack.machines]:
            eventually(lambda name=name: self._answers(name), name)

    def _answers(self, name: str) -> bool:
        try:
            return bool(self.attest(name))
        except grpc.RpcError:
            return False

    def testctl(self, *words: str) -> Done:
        return run([sys.executable, "-m", "testctl.cli.main", *words])

    def begin(self, plan: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
        """`testctl run` on the rack, begun."""
        argv = [sys.executable, "-m", "testctl.cli.main", "run", str(plan), "--testbed", str(self.inventory),
                "--results", str(self.where / "results"), *words]  # fmt: skip
        calls = {"TESTCTL_CALLS": str(self.where / "calls"), "COLUMNS": "200", **environment}
        process = subprocess.Popen(
            argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | calls
        )
        self.runs.append(process)
        return process

    def ends(self, process: subprocess.Popen[str], *codes: int) -> str:
        said, _ = process.communicate(timeout=1500)
        assert process.returncode in codes, said
        assert "Traceback" not in said, said
        return said

    def reaches(self, call: str, process: subprocess.Popen[str]) -> None:
        """Wait until the run makes a call, such as "sender Apply begins"."""
        calls = self.where / "calls"

        def there() -> bool:
            assert process.poll() is None, process.communicate()[0]
            return calls.exists() and f" {call}\n" in calls.read_text(encoding="utf-8")

        eventually(there, call, pause_s=0.005)

    def points(self) -> list[dict[str, Any]]:
        """The points of the newest run."""
        newest = (self.where / "results" / "latest").resolve()
        found: list[dict[str, Any]] = json.loads((newest / "summary.json").read_text(encoding="utf-8"))["points"]
        return found

    def outcome(self, point: dict[str, Any]) -> dict[str, Any]:
        """What a point of the newest run found."""
        path = (self.where / "results" / "latest").resolve() / "points" / point["id"] / "outcome.json"
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def plan(self, text: str) -> Path:
        """A plan of the test, with a fresh file of calls."""
        (self.where / "calls").unlink(missing_ok=True)
        path = self.where / "plan.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def other_inventory(self, **changes: dict[str, Any]) -> Path:
        """The inventory with other variables of some machines; None removes one."""
        other = self.inventory.with_name("inventory-other")
        other.mkdir(exist_ok=True)
        groups = yaml.safe_load((self.inventory / "hosts.yaml").read_text(encoding="utf-8"))
        for group in groups.values():
            for name in group["hosts"].keys() & changes.keys():
                merged = group["hosts"][name] | changes[name]
                group["hosts"][name] = {key: value for key, value in merged.items() if value is not None}
        (other / "hosts.yaml").write_text(yaml.safe_dump(groups), encoding="utf-8")
        (other / "group_vars").mkdir(exist_ok=True)
        everybody = (self.inventory / "group_vars" / "all.yaml").read_text(encoding="utf-8")
        (other / "group_vars" / "all.yaml").write_text(everybody, encoding="utf-8")
        return other


def eventually(true: Callable[[], bool], what: str, timeout_s: float = 900.0, pause_s: float = 0.5) -> None:
    until = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {timeout_s:g} s")
        time.sleep(pause_s)
