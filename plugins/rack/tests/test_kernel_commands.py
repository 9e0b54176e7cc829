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
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    found = tmp_path / "linux"
    found.mkdir()
    (found / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\n", encoding="utf-8")
    (found / "Kconfig").touch()
    return found


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    found = tmp_path / "hosts.yaml"
    found.write_text(HOSTS, encoding="utf-8")
    return found


def test_a_name_that_is_a_version(command: Call, tree: Path) -> None:
    code, _, said = command("kernel", "install", "6.12", "--from", str(tree), "--testbed", "none")
    assert (code, said) == (2, "kernel '6.12': want a name that is no version: a plan's 6.12 is Linux 6.12\n")


def test_a_directory_that_is_no_tree(command: Call, tmp_path: Path) -> None:
    code, _, said = command("kernel", "install", "mine", "--from", str(tmp_path), "--testbed", "none")
    assert code == 2
    assert said == (
        f"--from {tmp_path}: want the source tree of a Linux kernel (a Makefile with VERSION, and Kconfig); "
        "it has no Makefile\n"
    )


def test_a_tree_that_was_built_in(command: Call, tree: Path) -> None:
    (tree / ".config").touch()
    code, _, said = command("kernel", "install", "mine", "--from", str(tree), "--testbed", "none")
    assert code == 2
    assert f"as not clean; got .config there (make -C {tree} mrproper" in said


def test_no_inventory(command: Call, tree: Path) -> None:
    code, _, said = command("kernel", "install", "mine", "--from", str(tree), "--testbed", "none")
    assert code == 2
    assert said.startswith("--testbed none: want")


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
