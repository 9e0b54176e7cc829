# SPDX-License-Identifier: Apache-2.0
"""Deployment with Ansible over SSH, on a rack of namespaces: what it installs, who may call, what teardown leaves."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
import yaml
from testctl_agent.daemon import agent_pb2, agent_pb2_grpc
from testctl_rack import pki
from testctl_rack.inventory_file import read_rack
from testctl_rack.leased_agents import RemoteAgents
from testctl_rack.placement import Placement

from plugins.rack.tests.rack.abandoned import owned, remove_abandoned
from tests.attacker import EVIL
from tests.playbooks import PLAYBOOKS, ROOT, Done, play, run

MANAGEMENT = "198.18.77.0/24"  # of those for tests of networks; not the default
ATTACKER = ROOT / "tests" / "attacker.py"
EXPECTED = ("/tmp/.testctl-ansible", "/run/testctl-ansible", "/tmp/.ansible/tmp")
"""Directories that an attacker who knows Ansible makes before it does."""
pytestmark = pytest.mark.alone


@dataclass(frozen=True)
class Rack:
    """A rack that is up."""

    state: Path

    @property
    def inventory(self) -> Path:
        return self.state / "inventory"

    def tool(self, what: str, *words: str) -> Done:
        return run([str(ROOT / "plugins" / "rack" / "tools" / "rack"), what, "--state", str(self.state), *words])

    def play(self, name: str, *words: str) -> Done:
        return play("-i", str(self.inventory), str(PLAYBOOKS / f"{name}.yml"), *words)

    def inside(self, name: str, *words: str) -> Done:
        """A command over SSH on one host, as Ansible reaches it."""
        return run(self.ssh(name, *words))

    def ssh(self, name: str, *words: str) -> list[str]:
        ssh = self.state / "ssh"
        return ["ssh", "-F", "none", "-o", "IdentitiesOnly=yes", "-i", str(ssh / "id"), "-o",
                f"UserKnownHostsFile={ssh / 'known_hosts'}", f"root@{self.address(name)}", *words]  # fmt: skip

    @contextmanager
    def leased(self, name: str, holder: str) -> Iterator[None]:
        """With a run that has a host, as a controller leases it."""
        found = replace(read_rack(self.inventory), keys=self.state / "keys")
        alone = {name: found.machines[name]}
        with RemoteAgents(replace(found, machines=alone), Placement(alone), holder):
            yield

    @contextmanager
    def attacked(self, name: str) -> Iterator[dict[str, list[str]]]:
        """With an unprivileged user at work on a host; afterwards what it has seen and done."""
        ssh = self.ssh(name, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-",
                       "/run/attack-ends", *EXPECTED)  # fmt: skip
        found: dict[str, list[str]] = {}
        with ATTACKER.open() as program, subprocess.Popen(ssh, stdin=program, stdout=subprocess.PIPE, text=True) as one:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
            try:
                yield found
            finally:
                self.inside(name, "touch", "/run/attack-ends")
                found |= json.loads(one.stdout.read())
                self.inside(name, "rm", "/run/attack-ends")

    def hosts(self) -> dict[str, dict[str, str]]:
        groups = yaml.safe_load((self.inventory / "hosts.yaml").read_text(encoding="utf-8"))
        return {**groups["testctl_hosts"]["hosts"], **groups["testctl_switches"]["hosts"]}

    def address(self, name: str) -> str:
        return self.hosts()[name]["ansible_host"]

    def changes(self) -> list[str]:
        done = self.tool("changes")
        assert done.code == 0, done.said
        return done.said.splitlines()

    def describe(self, name: str, who: Path, caller: str = "controller", called: str = "") -> agent_pb2.Description:
        """Ask an agent, with the certificates of a directory; RpcError as gRPC raises it."""
        credentials = grpc.ssl_channel_credentials(
            (who / "ca.crt").read_bytes(),
            (who / f"{caller}.key").read_bytes() if caller else None,
            (who / f"{caller}.crt").read_bytes() if caller else None,
        )
        options = [("grpc.ssl_target_name_override", called or name)]
        with grpc.secure_channel(self.hosts()[name]["testctl_listen"], credentials, options) as channel:
            return agent_pb2_grpc.AgentStub(channel).Describe(agent_pb2.DescribeRequest(), timeout=120.0)


@dataclass(frozen=True)
class Deployed(Rack):
    """With what an attacker on alpha saw and did during each of two deployments."""

    attacks: Sequence[dict[str, list[str]]]


OWN = "find /var/lib/testctl /var/log/testctl -maxdepth 1 -type d -user testctl -prune"
REST = "find $folder -mindepth 1 -maxdepth 1 ! -name aside -exec mv -t $folder/aside {} +"
LINKS = "for one in work journal.jsonl packages current; do ln -s /srv/victim $folder/$one; done"
BACK = "find $folder -maxdepth 1 -type l -delete; mv $folder/aside/* $folder; rmdir $folder/aside"
VICTIM = "stat --format='%A %U %G %N' /srv/victim /srv/victim/*; cat /srv/victim/*"


def plant(rack: Rack, name: str) -> str:
    """Links of an agent that was taken over, in all directories of its user; returns what they lead to."""
    made = rack.inside(name, "install -d -m 700 /srv/victim && echo good > /srv/victim/file")
    assert made.code == 0, made.said
    as_user(rack, name, f"for folder in $({OWN}); do mkdir $folder/aside; {REST}; {LINKS}; done")
    return rack.inside(name, VICTIM).said


def as_user(rack: Rack, name: str, script: str) -> None:
    user = ["setpriv", "--reuid=testctl", "--regid=testctl", "--clear-groups"]
    done = rack.inside(name, "cd / && " + shlex.join([*user, "sh", "-euc", script]))
    assert (done.code, done.said) == (0, "")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A rack with nothing deployed; afterwards the machine has nothing of it."""
    rack = Rack(tmp_path_factory.mktemp("rack") / "state")
    remove_abandoned()
    owned(rack.state)
    done = rack.tool("up", "--management", MANAGEMENT)
    assert done.code == 0, done.said
    try:
        yield rack
    finally:
        down = rack.tool("down")
    assert down.code == 0, down.said
    assert not rack.state.exists()
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\brack-", links), "those of a rack of machines, mrack-, may be there"
    assert not list(Path("/run/netns").glob("rack-*"))
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert str(rack.state) not in mounts
    assert "rack-" not in mounts


@pytest.fixture(scope="module")
def before(fresh: Rack) -> list[str]:
    """What each host is before it is touched."""
    return fresh.changes()


@pytest.fixture(scope="module")
def rack(fresh: Rack, before: list[str]) -> Deployed:
    """The rack with its agents deployed, twice; after check mode, which changed nothing."""
    trial = fresh.play("deploy", "--check")
    assert trial.code == 0, trial.said
    assert all(trial.changed[name] > 0 for name in fresh.hosts()), "check mode says what would change"
    assert fresh.changes() == before
    with fresh.attacked("alpha") as attacks:
        first = fresh.play("deploy")
    assert first.code == 0, first.said
    victim = plant(fresh, "beta")
    with fresh.attacked("alpha") as again:
        second = fresh.play("deploy")
    assert second.code == 0, second.said
    assert set(second.changed.values()) == {0}, second.said
    assert fresh.inside("beta", VICTIM).said == victim, "root followed a link of the agent's user"
    as_user(fresh, "beta", f"for folder in $({OWN}); do {BACK}; done")
    return Deployed(fresh.state, (attacks, again))


def test_hosts_are_apart(fresh: Rack) -> None:
    for name in fresh.hosts():
        assert fresh.inside(name, "hostname").said == f"{name}\n"
        assert fresh.inside(name, "touch", "/etc/testctl-was-here").code == 0
        assert not Path("/etc/testctl-was-here").exists()
        assert fresh.inside(name, "rm", "/etc/testctl-was-here").code == 0
    assert fresh.inside("alpha", "ls", "/sys/class/net").said.split() == ["eth1", "lo", "mgmt"]
    assert fresh.inside("s1", "ls", "/sys/class/net").said.split() == ["lo", "mgmt", "p1", "p2"]


def test_only_the_racks_key_logs_in(fresh: Rack, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    known = fresh.state / "ssh" / "known_hosts"
    done = run(["ssh", "-F", "none", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-i", str(other), "-o",
                f"UserKnownHostsFile={known}", f"root@{fresh.address('alpha')}", "true"])  # fmt: skip
    assert done.code == 255
    assert "Permission denied (publickey)" in done.said


def test_a_second_rack_is_refused(fresh: Rack, tmp_path: Path) -> None:
    done = Rack(tmp_path / "second").tool("up")
    assert done.code == 3
    assert "want no rack on this machine; got rack-alpha" in done.said
    assert not (tmp_path / "second").exists()


def test_a_wrong_inventory_is_refused_before_anything_changes(fresh: Rack, before: list[str]) -> None:
    done = fresh.play("deploy", "-e", "testctl_address=10.20.9.9", "--limit", "controller,alpha")
    assert done.code == 2
    assert "alpha: want eth1 up with 10.20.9.9" in " ".join(done.said.split())
    assert fresh.changes() == before


def test_an_attacker_on_the_host_takes_nothing_of_a_deployment(rack: Deployed) -> None:
    for attack in rack.attacks:
        assert attack["made"], "it was at work before Ansible was"
        assert attack["seen"], "it saw what root did in /tmp"
        assert attack["took"] == []
    first, second = (set(attack["seen"]) for attack in rack.attacks)
    assert not first & second, "a name that comes again can be there before"
    for name, of in (("ca.crt", "ca.crt"), ("agent.crt", "alpha.crt"), ("agent.key", "alpha.key")):
        want = hashlib.sha256((rack.state / "keys" / of).read_bytes()).hexdigest()
        assert rack.inside("alpha", f"sha256sum < /etc/testctl/{name}").said.split()[0] == want
    said = rack.inside("alpha", f"grep -rlF '{EVIL.strip()}' /etc /opt /usr/local /var/lib").said
    assert said == ""


def test_agents_answer_the_controller(rack: Rack) -> None:
    for name in rack.hosts():
        found = rack.describe(name, rack.state / "keys")
        assert (found.name, found.kind) == (name, "switch" if name == "s1" else "host")
    program = rack.describe("s1", rack.state / "keys").notes["forwarding"]
    assert "program.o" in program


def test_agents_run_as_their_own_user(rack: Rack) -> None:
    for name in rack.hosts():
        status = rack.inside(name, "cat /proc/$(pgrep -u testctl -f 'serve --config')/status").said
        assert re.search(r"^Uid:\s+(\d+)\s+\1\s+\1\s+\1$", status, re.MULTILINE)
        assert not re.search(r"^Uid:\s+0", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
        sets = {
            match[1]: int(match[2], 16) for match in re.finditer(r"^Cap(\w+):\s+([0-9a-f]+)$", status, re.MULTILINE)
        }
        wanted = sum(1 << number for number in (1, 12, 13, 21))  # dac_override net_admin net_raw sys_admin
        assert sets["Eff"] == sets["Bnd"] == wanted


@pytest.mark.parametrize("caller", ["", "alpha"])
def test_who_is_not_the_controller_is_refused(rack: Rack, caller: str) -> None:
    with pytest.raises(grpc.RpcError) as error:
        rack.describe("alpha", rack.state / "keys", caller)
    assert error.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED)


def test_another_authoritys_controller_is_refused(rack: Rack, tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha"])
    (tmp_path / "ca.crt").write_bytes((rack.state / "keys" / "ca.crt").read_bytes())
    with pytest.raises(grpc.RpcError) as error:
        rack.describe("alpha", tmp_path)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE


def test_an_agent_can_not_pass_for_another(rack: Rack) -> None:
    with pytest.raises(grpc.RpcError) as error:
        rack.describe("alpha", rack.state / "keys", called="beta")
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE


def test_an_agent_that_fails_is_started_again(rack: Rack) -> None:
    pid = rack.inside("beta", "pgrep -u testctl -f 'serve --config'").said.strip()
    assert rack.inside("beta", f"kill -KILL {pid}").code == 0
    waits = "until n=$(pgrep -u testctl -f 'serve --config') && [ $n != " + pid + " ]; do sleep 0.1; done"
    assert rack.inside("beta", f'timeout 30 sh -c "{waits.replace("$", chr(92) + "$")}"').code == 0


def test_a_deployment_that_was_interrupted_is_finished_by_the_next(rack: Rack) -> None:
    """The configuration is there already, but the agent has not read it."""
    agent, more = "pgrep -u testctl -f 'serve --config'", {"agent_controllers": ["controller", "ann"]}
    before, limit = rack.inside("alpha", agent).said, ("--limit", "controller,localhost,alpha")
    broken = rack.play("deploy", *limit, "-e", json.dumps({**more, "agent_service": "/proc/none"}))
    assert broken.code == 2, broken.said
    assert "ann" in rack.inside("alpha", "cat /etc/testctl/agent.json").said
    assert rack.inside("alpha", agent).said == before
    done = rack.play("deploy", *limit, "-e", json.dumps(more))
    assert done.code == 0, done.said
    assert rack.inside("alpha", agent).said != before
    assert rack.play("deploy", *limit, "-e", json.dumps(more)).changed["alpha"] == 0
    assert rack.play("deploy", *limit).code == 0


def test_a_host_that_a_run_has_is_not_changed(rack: Rack) -> None:
    """Neither by a deployment that has something to install, nor by teardown.yml, until an operator says so."""
    remembered = "/opt/testctl-agent/installed"
    runs = "pgrep -u testctl -f 'serve --config'"
    assert rack.inside("alpha", f"echo old > {remembered}").code == 0
    before, agent = rack.changes(), rack.inside("alpha", runs).said
    with rack.leased("alpha", "ann"):
        for play in ("deploy", "teardown"):
            done = rack.play(play, "--limit", "controller,localhost,alpha")
            said = " ".join(done.said.split())
            assert done.code == 2
            assert re.search(r"alpha: want a machine that no run has; it is leased to ann since .*, for another", said)
            assert done.changed["alpha"] == 0
        assert rack.changes() == before
        assert rack.inside("alpha", runs).said == agent
        assert rack.inside("alpha", f"cat {remembered}").said == "old\n"
        done = rack.play("deploy", "--limit", "controller,localhost,alpha", "-e", "agent_despite_lease=true")
        assert done.code == 0, done.said
    assert rack.inside("alpha", runs).said != agent
    assert rack.changes() == before


def test_a_version_has_an_environment_of_its_own(rack: Rack) -> None:
    """The agent that runs keeps its files until it is restarted, from the new ones, which then are alone."""
    runs = "tr '\\0' ' ' < /proc/$(pgrep -u testctl -f 'serve --config')/cmdline; ls -d /opt/testctl-agent/venv*"
    before = {name: rack.inside(name, runs).said for name in rack.hosts()}
    another = "cd /opt/testctl-agent && mv $(readlink venv) venv-0 && ln -sfn venv-0 venv && rm installed"
    for name in ("alpha", "beta"):
        done = rack.inside(name, another)
        assert done.code == 0, done.said
    done = rack.play("deploy")
    assert done.code == 0, done.said
    digest = rack.inside("s1", "cat /opt/testctl-agent/digest").said.strip()
    for name in rack.hosts():
        where = f"/opt/testctl-agent/venv-{digest[:16]}"
        assert rack.inside(name, runs).said == before[name]
        assert before[name].startswith(f"{where}/bin/python ")
        assert before[name].endswith(f"/opt/testctl-agent/venv\n{where}\n")
        assert rack.describe(name, rack.state / "keys").name == name


def test_a_half_deployed_rack_is_named(rack: Rack) -> None:
    assert rack.play("check").code == 0
    assert rack.inside("alpha", "sv", "-w", "20", "force-stop", "/etc/testctl/service").code == 0
    assert rack.inside("beta", "mv", "/etc/testctl/agent.json", "/etc/testctl/away").code == 0
    done = rack.play("check")
    said = " ".join(done.said.split())
    assert done.code == 2
    assert "2 of 3 agents do not answer: alpha: the agent is deployed but does not listen" in said
    assert "beta: no agent is deployed" in said
    assert rack.inside("beta", "mv", "/etc/testctl/away", "/etc/testctl/agent.json").code == 0


def test_deploying_again_starts_what_was_stopped(rack: Rack) -> None:
    """After the test above, which stopped alpha's agent."""
    done = rack.play("deploy", "--limit", "controller,alpha")
    assert done.code == 0, done.said
    assert done.changed["alpha"] == 1
    assert rack.describe("alpha", rack.state / "keys").name == "alpha"


def test_teardown_leaves_every_host_as_it_was(rack: Rack, before: list[str]) -> None:
    victim = plant(rack, "beta")
    own = "/var/lib/testctl/agent"
    as_user(rack, "beta", f"rm {own}/packages; echo testctl-planted > {own}/packages")
    done = rack.play("teardown")
    assert done.code == 0, done.said
    purge = re.search(r"^TASK .*Remove the packages that deploy.yml installed.*\n((?:.+\n)*)", done.said, re.MULTILINE)
    assert purge is not None
    assert "skipping: [beta]" in purge[1], "deploy.yml installed none"
    assert rack.inside("beta", VICTIM).said == victim, "root followed a link of the agent's user"
    assert rack.inside("beta", "rm -r /srv/victim").code == 0
    assert rack.changes() == before
    again = rack.play("teardown")
    assert again.code == 0, again.said
    assert set(again.changed.values()) == {0}
