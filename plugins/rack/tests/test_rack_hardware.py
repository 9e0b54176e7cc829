# SPDX-License-Identifier: Apache-2.0
"""An inventory that names tofino and trex: its agents get testctl-hardware, and the version the controller wants."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from testctl_agent.params import others
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import identity
from testctl_rack import wheelhouse

from agents.tests.system.made_up import BACKENDS, write
from tests.playbooks import PLAYBOOKS, ROLES, ROOT, Done, play

WANTED = [("tofino", ()), ("", ("trex", "tgen")), ("ebpf", ())]


def test_only_what_the_machines_name_is_installed() -> None:
    assert [one.requirement for one in wheelhouse.projects([("ebpf", ()), ("", ())])] == ["testctl-agent[daemon]"]
    assert [one.requirement for one in wheelhouse.projects(WANTED)] == [
        "testctl-agent[daemon]",
        "testctl-hardware[trex]",
    ]
    assert [one.requirement for one in wheelhouse.projects(WANTED[:1])] == ["testctl-agent[daemon]", "testctl-hardware"]
    agent, hardware = wheelhouse.projects(WANTED)
    assert hardware.directory == ROOT / "plugins" / "hardware"
    assert {"pyproject.toml", "src/testctl_hardware/tofino.py"} <= hardware.files().keys()
    assert not [name for one in (agent, hardware) for name in one.files() if "cache" in name or "egg-info" in name]
    assert "pyzmq" in wheelhouse.needs("testctl-hardware", ("trex",))
    assert "cffi" not in wheelhouse.needs("testctl-hardware", ("trex",)), "PyPy's"
    assert "pyzmq" not in wheelhouse.needs("testctl-hardware")


def test_what_racks_alone_need_comes_with_them() -> None:
    core = {re.split("[^A-Za-z0-9-]", one)[0] for one in metadata.requires("testctl") or []}
    assert "testctl-agent" in core
    assert not {"cryptography", "grpcio", "protobuf"} & core
    assert wheelhouse.needs("testctl-agent") == set()
    assert wheelhouse.needs("testctl-agent", ("daemon",)) >= {"grpcio", "protobuf"}


def test_what_was_not_installed_from_a_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(write(tmp_path, "testctl-made-up", {BACKENDS: {}}, {})))
    with pytest.raises(TestbedError, match=r"testctl-made-up: want it installed from a directory \(pip"):
        wheelhouse._directory("testctl-made-up")


def test_wheels_have_the_version_that_the_controller_wants(tmp_path: Path) -> None:
    """Without --python nothing is downloaded."""
    place = tmp_path / "agents"
    wanted = wheelhouse.projects(WANTED)
    assert wheelhouse.make(place, [], wanted)
    assert not wheelhouse.make(place, [], wanted)
    wheels = sorted((place / "wheels").glob("*.whl"))
    assert [one.name.partition("-")[0] for one in wheels] == ["testctl_agent", "testctl_hardware"]
    assert (place / "wheels" / "requirements.txt").read_text() == "testctl-agent[daemon]\ntestctl-hardware[trex]\n"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", f"--target={tmp_path / 'venv'}", *wheels], check=True)
    text = (
        "from testctl_agent.params import others; from testctl_agent.system import identity\n"
        "print(identity.__file__, identity.version(others.packages(['trex'], 'tofino')))"
    )
    env = {"PYTHONPATH": str(tmp_path / "venv"), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=env)
    file, version = done.stdout.split()
    assert file.startswith(str(tmp_path))
    assert version == identity.version(others.packages(["trex"], "tofino")) != identity.version()
    assert wheelhouse.make(place, [], wheelhouse.projects([])), "it has less to install"


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheelhouse") / "agents"
    wheelhouse.make(place, ["3.11"], wheelhouse.projects([]))
    return place


def test_a_host_gets_one_file_with_all_of_it(agents: Path) -> None:
    with tarfile.open(agents / wheelhouse.ARCHIVE) as archive:
        members = {one.name: one for one in archive}
    files = {str(path.relative_to(agents)) for path in agents.rglob("*") if path.is_file()} - {wheelhouse.ARCHIVE}
    assert {name for name, one in members.items() if one.isfile()} == files | {wheelhouse.INSTALLED}
    assert {"digest", "tgen", "program/program.o", "wheels/requirements.txt", "pip/pip/__main__.py"} <= files
    assert {(one.uid, one.gid, one.uname, one.gname) for one in members.values()} == {(0, 0, "root", "root")}
    runs = {name for name, one in members.items() if one.isfile() and one.mode != 0o644}
    assert (runs, members["tgen"].mode) == ({"tgen"}, 0o755)
    assert not any(name.startswith("wheels/pip-") for name in files), "the agent does not need it"
    pip = [sys.executable, "-m", "pip", "--version"]
    said = subprocess.run(pip, env={"PYTHONPATH": str(agents / "pip")}, capture_output=True, text=True, check=True)
    assert f"from {agents}/pip/pip " in said.stdout


def test_unpacking_leaves_nothing_of_an_earlier_version(agents: Path, tmp_path: Path) -> None:
    """An installation that is interrupted from then on has no version, also not the one that was there."""
    for name in ("wheels/testctl_agent-9.0-py3-none-any.whl", "wheels/sub/x", "venv/bin/python", wheelhouse.INSTALLED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("earlier", encoding="utf-8")
    (tmp_path / wheelhouse.ARCHIVE).symlink_to(agents / wheelhouse.ARCHIVE)
    tasks = yaml.safe_load((ROLES / "agent/tasks/install.yml").read_text(encoding="utf-8"))
    steps = next(task["block"] for task in tasks if "block" in task)
    command, key = (next(step for step in steps if "Unpack" in step["name"]), "ansible.builtin.command")
    subprocess.run([word.replace("{{ agent_home }}", str(tmp_path)) for word in command[key]["argv"]], check=True)
    wheels = {path.name for path in (agents / "wheels").iterdir()}
    assert {path.name for path in (tmp_path / "wheels").iterdir()} == wheels
    assert (tmp_path / "venv/bin/python").exists(), "it is used again"
    assert (tmp_path / wheelhouse.INSTALLED).read_text(encoding="utf-8") == ""
    remember = next(step[key]["argv"] for step in steps if "Remember" in step["name"])
    subprocess.run([word.replace("{{ agent_home }}", str(tmp_path)) for word in remember], check=True)
    assert (tmp_path / wheelhouse.INSTALLED).read_bytes() == (agents / "digest").read_bytes()


PLAY = """
- hosts: all
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.import_role: {name: switch_agent}
    - ansible.builtin.template: {src: "{{ template }}", dest: "{{ out }}", mode: "0644"}
      vars: {agent_kind: switch, agent_home: /opt/a, agent_state: /var/a}
"""


def test_the_agent_of_a_tofino_gets_the_addresses_that_it_needs(tmp_path: Path) -> None:
    sde, out = tmp_path / "sde", tmp_path / "environment"
    packages = sde / "lib" / "python3.8" / "site-packages" / "tofino"
    packages.mkdir(parents=True)
    (packages / "bfrt_grpc").mkdir()
    words = {
        "testctl_listen": "192.0.2.10:7400", "testctl_keys": "keys", "testctl_ports": {}, "testctl_backend": "tofino",
        "template": str(ROLES / "agent" / "templates" / "environment.j2"), "out": str(out),
        "ansible_python_interpreter": sys.executable,
    }  # fmt: skip
    rack = {"testctl_hosts": {}, "testctl_switches": {"hosts": {"s1": words}}}
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(rack))
    (tmp_path / "play.yml").write_text(PLAY)

    def played(*variables: str) -> Done:
        given = [word for variable in variables for word in ("-e", variable)]
        return play("-i", "hosts.yaml", "play.yml", *given, cwd=tmp_path)

    done = played()
    assert done.code == 2, done.said
    assert "s1: want for the back end tofino testctl_bfrt, such as 127.0.0.1:50052, and testctl_sde" in done.said
    address = "testctl_bfrt=127.0.0.1:50052"
    done = played(address, f"testctl_sde={tmp_path}/other")
    assert f"s1: want {tmp_path}/other/lib/python3*/site-packages/tofino; there is none" in done.said
    done = played(address, f"testctl_sde={sde}")
    assert done.code == 0, done.said
    lines = out.read_text().splitlines()
    assert lines[-2:] == ["TESTCTL_BFRT=127.0.0.1:50052", f"PYTHONPATH={packages}"]


def test_a_deployment_names_the_machine_whose_word_nobody_knows(tmp_path: Path) -> None:
    rack = yaml.safe_load((ROOT / "inventory" / "rack-example" / "hosts.yaml").read_text(encoding="utf-8"))
    hosts, switches = rack["testctl_hosts"]["hosts"], rack["testctl_switches"]["hosts"]
    hosts["beta"]["testctl_generators"] = ["trex", "netperf"]
    switches["s1"]["testctl_backend"] = "tofino"
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(rack), encoding="utf-8")
    given = ["-e", f"testctl_keys={tmp_path / 'keys'}", "-e", f"testctl_wheelhouse={tmp_path / 'agents'}"]
    done = play("-i", str(tmp_path / "hosts.yaml"), str(PLAYBOOKS / "deploy.yml"), *given)
    assert done.code == 2, done.said
    # A daemon runs no commands, whatever its configuration.
    known = ", ".join(word for word in others.generator().schema()["enum"] if word != "command")
    assert f"beta: testctl_generators: want one of {known}; got 'netperf'" in done.said
    assert not (tmp_path / "agents").exists()
