# SPDX-License-Identifier: Apache-2.0
"""testctl kernel: wrong requests on real directories, before a host is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_rack import host_kernel

from controller.tests.cli.conftest import Call
from controller.tests.cli.conftest import command as command

HOSTS = """
testctl_hosts:
  hosts:
    alpha:
      testctl_listen: 192.0.2.11:7400
      testctl_device: eth1
      testctl_address: 10.20.0.1
      testctl_mac: "02:00:00:00:00:01"
      testctl_keys: keys
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    found = tmp_path / "hosts.yaml"
    found.write_text(HOSTS, encoding="utf-8")
    return found


@pytest.mark.parametrize(
    ("name", "left", "said"),
    [
        ("6.12", "linux/Kconfig", "kernel '6.12': want a name that is no version: a plan's 6.12 is Linux 6.12\n"),
        ("mine", "linux/.config", "as not clean; got .config there (make -C "),
        ("mine", "linux/Kconfig", "--testbed none: want"),
    ],
    ids=["a version", "a tree that was built in", "no inventory"],
)
def test_wrong_requests(command: Call, tree: Path, name: str, left: str, said: str) -> None:
    (tree.parent / left).touch()
    code, _, error = command("kernel", "install", name, "--from", str(tree), "--testbed", "none")
    assert code == 2
    assert said in error


def test_a_directory_that_is_no_tree(command: Call, tmp_path: Path) -> None:
    code, _, said = command("kernel", "install", "mine", "--from", str(tmp_path), "--testbed", "none")
    assert code == 2
    assert said.endswith("a Linux kernel (a Makefile with VERSION, and Kconfig); it has no Makefile\n")


def test_a_host_that_is_none(command: Call, tree: Path, inventory: Path) -> None:
    words = ("--from", str(tree), "--testbed", str(inventory), "--limit", "beta")
    code, _, said = command("kernel", "install", "mine", *words)
    assert (code, said) == (2, f"--limit beta: want hosts of {inventory}: alpha; got beta\n")


def test_a_controller_without_the_programs(
    command: Call, tree: Path, inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_kernel, "PROGRAMS", {"sh": "dash", "no-dh_builddeb": "debhelper"})
    code, _, said = command("kernel", "install", "mine", "--from", str(tree), "--testbed", str(inventory))
    assert code == 3
    assert "want Debian's packages debhelper on this controller" in said
    assert list(tree.parent.glob("cache/host-kernels/*")) == []
