# SPDX-License-Identifier: Apache-2.0
"""Kernels of hosts: what is listed and refused, what a host says of its own, and a playbook's output."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_rack import host_kernel, host_kernels, host_modules, menus, playbooks
from testctl_rack.host_kernel import Package
from testctl_rack.host_kernels import Request, install, listed, remove
from testctl_rack.inventory_file import Machine, Rack

OWN, MINE, OLDER = "6.12.117+deb12-amd64", "6.12.117-testctl-mine", "6.12.116-testctl-mine"
INVENTORY = Path("inventory/mine")


class Hosts:
    """What alpha and beta answer, and which playbooks they were given."""

    def __init__(self) -> None:
        self.menu = {"alpha": [OWN, MINE], "beta": [OWN]}
        self.running = {"alpha": OWN, "beta": OWN}
        self.default = {"alpha": OWN, "beta": OWN}
        self.config = base64.b64encode(zlib.compress(b"CONFIG_A=y\n")).decode()
        self.modules = {"alpha": ["ext4", "e1000e"], "beta": ["ext4", "virtio_net"]}
        self.played: list[tuple[str, tuple[str, ...], dict[str, Any]]] = []
        self.built: list[host_kernel.Wanted] = []

    def on_hosts(self, inventory: Path, hosts: Iterable[str], script: Path, words: list[str]) -> dict[str, Any]:
        if words:
            return {
                h: {"kernels": self.menu[h], "running": self.running[h], "default": self.default[h], "was": ""}
                for h in hosts
            }
        return {h: {"release": self.running[h], "modules": self.modules[h], "config": self.config} for h in hosts}

    def play(self, inventory: Path, name: str, hosts: Iterable[str], variables: dict[str, Any]) -> dict[str, int]:
        self.played.append((name, tuple(hosts), variables))
        return dict.fromkeys(hosts, 3)

    def build(self, wanted: host_kernel.Wanted, progress: object, jobs: int) -> Package:
        self.built.append(wanted)
        return Package(Path("mine.deb"), MINE, True)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    found = Hosts()
    machines = {name: Machine(name, "host", f"192.0.2.1:{7400 + n}") for n, name in enumerate(("alpha", "beta"))}
    monkeypatch.setattr(host_kernels, "read_rack", lambda path: Rack(path, machines, Path()))
    monkeypatch.setattr(host_kernels, "on_hosts", found.on_hosts)
    monkeypatch.setattr(menus, "on_hosts", found.on_hosts)
    monkeypatch.setattr(host_kernels, "play", found.play)
    monkeypatch.setattr(host_kernel, "build", found.build)
    monkeypatch.setattr(host_kernel, "check_programs", lambda: None)
    return found


def put(tree: Path, **more: Any) -> dict[str, int]:
    return install(Request("mine", tree, INVENTORY, **more), lambda *_: None, 1, lambda _: None)[1]


def test_kernels_of_hosts(hosts: Hosts) -> None:
    found = listed(INVENTORY, host_kernels.hosts_of(INVENTORY))
    assert [(one.host, one.release, one.name, one.runs, one.default) for one in found] == [
        ("alpha", OWN, "", True, True),
        ("alpha", MINE, "mine", False, False),
        ("beta", OWN, "", True, True),
    ]


def test_the_modules_of_all_hosts_are_built(hosts: Hosts, tree: Path) -> None:
    assert put(tree) == {"alpha": 3, "beta": 3}
    (wanted,) = hosts.built
    assert (wanted.config, wanted.modules) == ("CONFIG_A=y\n", {"ext4", "e1000e", "virtio_net"})
    variables = {"kernel_package": str(Path("mine.deb").resolve()), "kernel_release": MINE}
    assert hosts.played == [("kernel_install.yml", ("alpha", "beta"), variables)]


def test_a_configuration_of_the_user_s_stays_whole(hosts: Hosts, tree: Path) -> None:
    (tree / "own.config").write_text("CONFIG_B=y\n", encoding="utf-8")
    put(tree, config=tree / "own.config", limit="beta")
    assert (hosts.built[0].config, hosts.built[0].modules) == ("CONFIG_B=y\n", None)
    assert hosts.played[0][1] == ("beta",)


def test_a_name_that_another_kernel_has(hosts: Hosts, tree: Path) -> None:
    hosts.menu["beta"] = [OWN, OLDER]
    with pytest.raises(
        PlanError, match=rf"host beta: want no other kernel of the name mine .*got {OLDER}.*remove mine"
    ):
        put(tree)
    assert (hosts.built, hosts.played) == ([], [])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"limit": "gamma"}, r"--limit gamma: want hosts of inventory/mine: alpha, beta; got gamma"),
        ({"config": Path("none.config")}, "--config none.config: .*there is no such file"),
    ],
)
def test_wrong_requests(hosts: Hosts, tree: Path, more: dict[str, Any], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        put(tree, **more)
    assert hosts.built == []


@pytest.mark.parametrize("said", ["", "!", base64.b64encode(b"x").decode()])
def test_a_configuration_that_is_none(hosts: Hosts, tree: Path, said: str) -> None:
    hosts.config = said
    with pytest.raises(TestbedError, match="want the configuration of its kernel"):
        put(tree)


def test_modules_that_are_none(hosts: Hosts, tree: Path) -> None:
    hosts.modules["beta"] = ["../x"]
    with pytest.raises(TestbedError, match=r"host beta .*want names of modules; got '\.\./x'"):
        put(tree)


def test_a_menu_that_is_none(hosts: Hosts) -> None:
    """Its kernels' names become variables of a playbook, where {{ }} would be evaluated on the controller."""
    hosts.menu["beta"] = [OWN, "{{ lookup('pipe', 'id') }}-testctl-mine"]
    with pytest.raises(TestbedError, match=r"host beta .*want releases of kernels, .*; got .\{\{ lookup"):
        remove("mine", INVENTORY)
    assert hosts.played == []


def test_removal(hosts: Hosts) -> None:
    assert remove("mine", INVENTORY) == ([MINE], {"alpha": 3})
    assert hosts.played == [("kernel_remove.yml", ("alpha",), {"kernel_releases": [MINE]})]


def test_a_kernel_that_is_used_is_not_removed(hosts: Hosts) -> None:
    hosts.running["alpha"] = MINE
    with pytest.raises(PlanError, match=r"host alpha: want .* neither to run nor to be the default.*got it running"):
        remove("mine", INVENTORY)
    hosts.running["alpha"], hosts.default["alpha"] = OWN, MINE
    with pytest.raises(PlanError, match="got it as the default"):
        remove("mine", INVENTORY)
    assert hosts.played == []


def test_a_kernel_that_is_not_there_is_not_removed(hosts: Hosts) -> None:
    with pytest.raises(PlanError, match=r"kernel 'other': want one .* on alpha, beta; got mine"):
        remove("other", INVENTORY)


def test_what_a_host_says_of_its_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "modules").write_text("ext4 1142784 1 - Live 0x0\njbd2 200704 1 ext4, Live 0x0\n", "ascii")
    host_modules.main(tmp_path, "6.12")
    assert "want the configuration of Linux 6.12" in json.loads(capsys.readouterr().out)["error"]
    (tmp_path / "proc" / "config.gz").write_bytes(gzip.compress(b"CONFIG_A=m\n"))
    host_modules.main(tmp_path, "6.12")
    found = json.loads(capsys.readouterr().out)
    assert (found["release"], found["modules"]) == ("6.12", ["ext4", "jbd2"])
    assert zlib.decompress(base64.b64decode(found["config"])) == b"CONFIG_A=m\n"


SAID = """
TASK [kernel : Install the package] ***
fatal: [alpha]: FAILED! => {"changed": false, "msg": "no space left"}
fatal: [beta -> localhost]: FAILED! => {"changed": false, "msg": "beta: want a machine"}
fatal: [gamma]: FAILED! => {"stderr": "Shared connection to gamma closed.", "stdout": "{\\"error\\": \\"want y\\"}"}

PLAY RECAP ***
alpha                      : ok=13   changed=4    unreachable=0    failed=1
localhost                  : ok=1    changed=0    unreachable=0    failed=0
"""


def test_a_playbook_s_output() -> None:
    assert playbooks.failures(SAID) == "alpha: no space left\nbeta: want a machine\ngamma: want y"
    assert playbooks.changed(SAID) == {"alpha": 4}
