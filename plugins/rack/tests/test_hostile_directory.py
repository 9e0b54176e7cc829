# SPDX-License-Identifier: Apache-2.0
"""Commands for a rack, in a directory that was unpacked from elsewhere: no ansible.cfg there is taken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testctl.cli.main import _command
from testctl_agent.spec.errors import TestbedError
from testctl_rack import ansible, playbooks
from testctl_rack.host_kernels import INSTALL

from tests.cli_commands import commands, takes

pytestmark = pytest.mark.skipif(ansible.program("ansible") is None, reason="Ansible is not installed")

CONFIGURATION = "[defaults]\n" + "".join(
    f"{kind}_plugins = ./plugins\n" for kind in ("vars", "callback", "inventory", "strategy", "connection", "action")
)
PLUGIN = "open('owned', 'w')\n"
INVENTORY = """
testctl_hosts:
  hosts: {alpha: {testctl_device: lo, testctl_address: 10.99.0.1, testctl_mac: "02:00:00:00:00:01"},
          beta: {testctl_device: lo, testctl_address: 10.99.0.2, testctl_mac: "02:00:00:00:00:02"}}
  vars: {ansible_host: 127.0.0.1, ansible_port: 1, testctl_listen: "127.0.0.1:1", ansible_ssh_common_args: -F none}
"""
PLAN = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, bytes, 10kB]]\n"
RACKS = [(path, command) for path, command in commands(_command()) if takes(command, "INVENTORY")]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A directory with a configuration of Ansible whose plugins leave a file there."""
    where = tmp_path / "unpacked"
    (where / "plugins").mkdir(parents=True)
    (where / "plugins" / "evil.py").write_text(PLUGIN, encoding="utf-8")
    (where / "ansible.cfg").write_text(CONFIGURATION, encoding="utf-8")
    (where / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "rack").mkdir()
    (tmp_path / "rack" / "hosts.yaml").write_text(INVENTORY, encoding="utf-8")
    return where


def test_the_trap_works(elsewhere: Path) -> None:
    argv = [str(ansible.program("ansible-inventory")), "-i", "../rack", "--list"]
    env = {name: value for name, value in os.environ.items() if name != "ANSIBLE_CONFIG"}
    subprocess.run(argv, capture_output=True, cwd=elsewhere, env=env, check=True, timeout=120)
    assert (elsewhere / "owned").exists()


@pytest.mark.parametrize(("path", "command"), RACKS, ids=["-".join(path) for path, _ in RACKS])
def test_no_command_takes_it(path: tuple[str, ...], command: object, elsewhere: Path) -> None:
    values = {"PLAN": "plan.yaml", "NAME": "mine", "DIR": ".", "INVENTORY": "../rack"}
    given = [*path]
    for one in command.params:  # type: ignore[attr-defined]
        if one.param_type_name == "argument":
            given.append(values[one.metavar.strip("[…]")])
        elif one.required or "INVENTORY" in (one.metavar or ""):
            given += [one.opts[0], values[one.metavar.rpartition("|")[2]]]
    argv = [sys.executable, "-m", "testctl.cli.main", *given]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=elsewhere, check=False, timeout=300)
    assert "Traceback" not in done.stderr
    assert not (elsewhere / "owned").exists(), done.stderr


def test_no_playbook_takes_it(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(elsewhere)
    with pytest.raises(TestbedError, match="alpha"):
        playbooks.play(Path("../rack"), INSTALL, ["alpha"], {"kernel_package": "/nothing", "kernel_release": "6.1"})
    assert not (elsewhere / "owned").exists()
