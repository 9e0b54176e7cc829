# SPDX-License-Identifier: Apache-2.0
"""An inventory that names tofino and trex: its agents get testctl-hardware, and the version the controller wants."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from testctl.testbeds import inventory_file, wheelhouse
from testctl_agent.params import others
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import identity

from agents.tests.system.made_up import BACKENDS, write

ROOT = Path(__file__).parents[1]
WANTED = [("tofino", ()), ("", ("trex", "tgen")), ("ebpf", ())]


def test_only_what_the_machines_name_is_installed() -> None:
    assert [one.requirement for one in wheelhouse.projects([("ebpf", ()), ("", ())])] == ["testctl-agent"]
    assert [one.requirement for one in wheelhouse.projects(WANTED)] == ["testctl-agent", "testctl-hardware[trex]"]
    assert [one.requirement for one in wheelhouse.projects(WANTED[:1])] == ["testctl-agent", "testctl-hardware"]
    agent, hardware = wheelhouse.projects(WANTED)
    assert hardware.directory == ROOT / "extras" / "hardware"
    assert {"pyproject.toml", "src/testctl_hardware/tofino.py"} <= hardware.files().keys()
    assert not [name for one in (agent, hardware) for name in one.files() if "cache" in name or "egg-info" in name]
    assert "pyzmq" in wheelhouse.needs("testctl-hardware", ("trex",))
    assert "cffi" not in wheelhouse.needs("testctl-hardware", ("trex",)), "PyPy's"
    assert "pyzmq" not in wheelhouse.needs("testctl-hardware")


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
    assert (place / "wheels" / "requirements.txt").read_text() == "testctl-agent\ntestctl-hardware[trex]\n"
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


@pytest.mark.skipif(inventory_file.ansible("ansible-playbook") is None, reason="ansible-playbook is not installed")
def test_a_deployment_names_the_machine_whose_word_nobody_knows(tmp_path: Path) -> None:
    rack = yaml.safe_load((ROOT / "inventory" / "rack-example" / "hosts.yaml").read_text(encoding="utf-8"))
    hosts, switches = rack["testctl_hosts"]["hosts"], rack["testctl_switches"]["hosts"]
    hosts["beta"]["testctl_generators"] = ["trex", "netperf"]
    switches["s1"]["testctl_backend"] = "tofino"
    (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(rack), encoding="utf-8")
    program = inventory_file.ansible("ansible-playbook")
    env = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "playbooks" / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
    argv = [str(program), "-i", str(tmp_path / "hosts.yaml"), str(ROOT / "playbooks" / "deploy.yml")]
    argv += ["-e", f"testctl_keys={tmp_path / 'keys'}", "-e", f"testctl_wheelhouse={tmp_path / 'agents'}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2, done.stdout
    known = ", ".join(others.generator().schema()["enum"])
    assert f"beta: testctl_generators: want one of {known}; got 'netperf'" in done.stdout
    assert not (tmp_path / "agents").exists()
