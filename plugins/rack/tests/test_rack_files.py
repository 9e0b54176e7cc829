# SPDX-License-Identifier: Apache-2.0
"""What of a deployment can be seen without root: a rack's plan and inventory, pinned packages, the systemd unit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from simulated_rack import hosts, inventory, leftovers
from simulated_rack.__main__ import down
from simulated_rack.plan import plan
from testctl_agent.cc import shared
from testctl_agent.collect import _clock_state
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.switch import physical_ports
from testctl_rack import wheelhouse

from tests.cli_commands import call
from tests.playbooks import PLAYBOOKS, PROGRAM, ROLES, ROOT, Done, run

ROLE = ROLES / "agent"


@given(hosts=st.integers(2, 16))
def test_nothing_in_a_rack_is_there_twice(hosts: int) -> None:
    rack = plan(Path("/state"), hosts)
    assert len(rack.hosts) == hosts
    for what in ("name", "management", "namespace"):
        assert len({getattr(node, what) for node in rack.nodes}) == hosts + 1
    for what in ("address", "mac"):
        assert len({getattr(node, what) for node in rack.hosts}) == hosts
    assert len({port for node in rack.hosts for port in node.devices.values()}) == hosts
    assert all(len(node.namespace) <= 15 for node in rack.nodes), "it is a device's name too"


@pytest.mark.parametrize(
    ("hosts", "management", "words"),
    [
        (1, "198.51.100.0/24", "want 2 to 16 hosts; got 1"),
        (17, "198.51.100.0/24", "want 2 to 16 hosts; got 17"),
        (2, "198.51.100.1/24", "want --management such as"),
        (2, "198.51.100.0/28", "want --management of at least 32 addresses"),
    ],
)
def test_a_rack_that_can_not_be(hosts: int, management: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        plan(Path("/state"), hosts, management)


def test_a_process_that_ended_after_it_was_listed_is_none_of_a_host() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with subprocess.Popen(["true"]) as unreaped:
        os.waitid(os.P_PID, unreaped.pid, os.WEXITED | os.WNOWAIT)
        found = hosts.running([os.getpid(), ended.pid, unreaped.pid])
    assert found == {os.getpid(): hosts.command(os.getpid())}


def test_the_inventory_has_what_the_example_has(tmp_path: Path) -> None:
    folder = inventory.write(plan(tmp_path, 3))
    made = yaml.safe_load((folder / "hosts.yaml").read_text(encoding="utf-8"))
    example = yaml.safe_load((ROOT / "inventory" / "rack-example" / "hosts.yaml").read_text(encoding="utf-8"))
    for group in ("testctl_hosts", "testctl_switches"):
        words = [set(one) for groups in (made, example) for one in groups[group]["hosts"].values()]
        assert all(one == words[0] for one in words)
    assert set(made["testctl_switches"]["hosts"]["s1"]["testctl_ports"]) == set(made["testctl_hosts"]["hosts"])
    keys = yaml.safe_load((folder / "group_vars" / "all.yaml").read_text(encoding="utf-8"))["testctl_keys"]
    assert sorted(path.name for path in (folder / keys).glob("*.crt")) == [
        "alpha.crt", "beta.crt", "ca.crt", "controller.crt", "gamma.crt", "s1.crt",
    ]  # fmt: skip


def test_a_dry_run_of_the_example_says_who_is_who_and_reaches_nobody(tmp_path: Path) -> None:
    """Nobody: there is no certificate to call anybody with, and the addresses are those of documentation."""
    example = ("--testbed", str(ROOT / "inventory" / "rack-example"))
    done = call(tmp_path, "plan", str(ROOT / "plans" / "rack.yaml"), *example)
    assert done.stderr == ""
    assert "rack-example: sender is alpha, receiver is beta, switch is s1" in done.stdout
    wider = tmp_path / "wider.yaml"
    wider.write_text("topology: star\nflows: {f: h1 -> h2}\ntuples: [[f, duration, 1s]]\n", encoding="utf-8")
    assert "the plan's topology does not fit" in call(tmp_path, "plan", str(wider), *example, code=2).stderr


def finds_settings(where: Path, *words: str) -> Done:
    """ansible-playbook, which finds its settings in the working directory."""
    return run(["env", "--unset=ANSIBLE_CONFIG", PROGRAM, *words], cwd=where)


@pytest.mark.parametrize("where", [".", "playbooks"])
@pytest.mark.parametrize("inventory", ["", "localhost,", "{}\n", "inventory/nowhere"])
def test_a_deployment_to_nobody_fails(where: str, inventory: str, tmp_path: Path) -> None:
    """Ansible alone would skip every play and end with 0."""
    if inventory == "{}\n":
        (tmp_path / "hosts.yaml").write_text(inventory)
        inventory = str(tmp_path / "hosts.yaml")
    words = ["-i", inventory] if inventory else []
    done = finds_settings(ROOT / where, *words, os.path.relpath(PLAYBOOKS / "deploy.yml", ROOT / where))
    assert done.code != 0, done.said
    got = f"{ROOT / where / inventory} is no file or directory" if "nowhere" in inventory else "got none"
    assert f"want an inventory with hosts in group testctl_hosts; {got}: give it with -i" in done.said
    assert "ansible-playbook -i INVENTORY deploy.yml; inventory/rack-example is an example" in done.said


def test_a_dry_run_of_the_example_needs_no_settings_in_the_environment() -> None:
    done = finds_settings(ROOT, "-i", "inventory/rack-example", "playbooks/deploy.yml", "--list-tasks")
    assert done.code == 0, done.said
    assert "host_agent" in done.said


def test_the_settings_of_the_root_are_those_of_the_playbooks() -> None:
    texts = [(ROOT / name / "ansible.cfg").read_text(encoding="utf-8") for name in (".", "playbooks")]
    root, playbooks = ([line for line in text.splitlines() if not line.startswith("#")] for text in texts)
    paths = {"inventory": "no_inventory.ini", "roles_path": "roles", "home": "../build/ansible"}
    assert [line for line in playbooks if line not in root] == [f"{key} = {path}" for key, path in paths.items()]
    from_the_root = [f"{key} = {os.path.normpath(Path('playbooks', path))}" for key, path in paths.items()]
    assert [line for line in root if line not in playbooks] == from_the_root
    assert len(root) == len(playbooks)


def test_what_differs_is_named_with_its_sign() -> None:
    before = {"devices": ["a", "b"], "mounts": []}
    assert leftovers.differences(before, before) == []
    assert leftovers.differences(before, {"devices": ["b", "c"], "mounts": []}) == ["devices: + c", "devices: - a"]


@pytest.mark.parametrize("made", [["notes.txt"], ["ssh", "notes.txt"], ["nodes", ".bashrc"]])
def test_only_a_racks_directory_is_removed(tmp_path: Path, made: list[str]) -> None:
    for name in made:
        (tmp_path / name).touch()
    with pytest.raises(PlanError, match=r"want --state with the directory of a rack; got .*, which is none"):
        down(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(made)


def test_what_the_agent_needs_is_pinned() -> None:
    needs = wheelhouse.needs(wheelhouse.AGENT, ("daemon",))
    assert {"grpcio", "protobuf"} <= needs
    assert "p4runtime" not in needs, "BMv2's"
    pinned = wheelhouse.pins((ROOT / "constraints.txt").read_text(encoding="utf-8"), needs)
    starts = [line.partition("==")[0] for line in pinned.splitlines() if "==" in line]
    assert starts == sorted(needs)
    assert pinned.count("--hash=") >= len(starts)


def test_a_package_that_is_not_pinned_is_named() -> None:
    text = "a==1 \\\n    --hash=sha256:00\nb-c==2 \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\n"
    assert wheelhouse.pins(text, ["b-c"]) == "b-c==2 \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\n"
    with pytest.raises(TestbedError, match=r"want d, which the agents need; got none"):
        wheelhouse.pins(text, ["a", "d"])


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The agent's unit, of a program that does nothing."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    known = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    template = jinja2.Template((ROLE / "templates" / "unit.service.j2").read_text(encoding="utf-8"))
    made = tmp_path / "testctl-agent.service"
    text = template.render({**known, "agent_home": str(tmp_path), "inventory_hostname": "alpha"})
    made.write_text(text + "\n", encoding="utf-8")
    program = tmp_path / "venv" / "bin" / "testctl-agent"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    return made


def test_the_systemd_unit_is_well_formed(unit: Path) -> None:
    assert run(["systemd-analyze", "verify", "--man=no", str(unit)]) == Done(0, "")
    text = unit.read_text(encoding="utf-8")
    assert "User=testctl\n" in text
    assert "AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW" in text


def test_the_unit_filters_no_call_that_the_agent_makes() -> None:
    """adjtimex is among those that ProtectClock filters; bpf is not in @system-service."""
    text = (ROLE / "templates" / "unit.service.j2").read_text(encoding="utf-8")
    set_to = dict(reversed(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)))
    assert "ProtectClock" not in set_to
    assert {"bpf", "adjtimex"} <= set(set_to["SystemCallFilter"].split())
    folders = [shared.STATE, physical_ports.RUN, _clock_state.RUN]
    assert [Path(f"/run/{one}") for one in set_to["RuntimeDirectory"].split()] == folders


def test_the_unit_is_exposed_less_than_most(unit: Path) -> None:
    """As systemd-analyze counts it, 0 to 10; what is missing to less are the capabilities it needs."""
    done = run(["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=31", str(unit)])
    if "unrecognized option" in done.said:
        pytest.skip("systemd-analyze security has no --offline (systemd 249 or earlier)")
    assert done.code == 0, done.said


def test_the_documented_capabilities_are_those_deployed() -> None:
    """agents/tests/daemon/root_capabilities.py runs an agent with those of the document."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(CAP_[A-Z_]+)` \|", text, re.MULTILINE)
    deployed = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))["agent_capabilities"]
    assert [name.lower() for name in documented] == deployed
