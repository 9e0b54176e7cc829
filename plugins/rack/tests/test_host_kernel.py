# SPDX-License-Identifier: Apache-2.0
"""A kernel for hosts: its name, its tree, its configuration; nothing is built."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab import make
from testctl.system import checkout
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_rack import host_config, host_kernel, host_name
from testctl_rack.host_kernel import Wanted


@pytest.mark.parametrize("name", ["mine", "net-next", "a", "cubic2", "my.tree", "c++", "x" * 24, "6.12-mine"])
def test_names(name: str) -> None:
    assert host_name.check(name) == name
    assert host_name.name_of(f"6.12.117{host_name.local_version(name)}") == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *(
            (name, "want a name of lower case letters")
            for name in ("", "Mine", "a b", "a_b", "-a", "a-", "a.", "x" * 25, "mine\n", "../x", "ä")
        ),
        *((name, "want a name that is no version") for name in ("6", "6.12", "6.12.117")),
        *((name, "does not end in dbg or recovery") for name in ("dbg", "mine-dbg", "recovery")),
    ],
)
def test_names_that_are_refused(name: str, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        host_name.check(name)


@pytest.mark.parametrize(
    ("name", "release", "is_meant"),
    [
        ("mine", "6.12.117-testctl-mine", True),
        ("mine", "6.12.117-testctl-not-mine", False),
        ("not-mine", "6.12.117-testctl-not-mine", True),
        ("mine", "6.12.9-mine", True),
        ("amd64", "6.1.0-56-amd64", True),
        ("mine", "6.12.117-testctl-min", False),
    ],
)
def test_what_a_name_means(name: str, release: str, is_meant: bool) -> None:
    assert host_name.means(name, release) is is_meant


def test_the_version_of_a_tree(tree: Path) -> None:
    assert host_kernel.version_of(tree) == "6.12.117"


def test_what_is_no_tree(tree: Path) -> None:
    with pytest.raises(PlanError, match="there is no such directory"):
        host_kernel.version_of(tree / "none")
    (tree / "Makefile").write_text("all:\n", encoding="utf-8")
    with pytest.raises(PlanError, match="its Makefile has no VERSION and PATCHLEVEL"):
        host_kernel.version_of(tree)
    (tree / "Kconfig").unlink()
    with pytest.raises(PlanError, match=r"want the source tree of a Linux kernel .*; it has no Kconfig"):
        host_kernel.version_of(tree)


@pytest.mark.parametrize("left", host_kernel.IN_TREE)
def test_a_tree_that_was_built_in_is_not_clean(tree: Path, left: str) -> None:
    (tree / left).mkdir(parents=True)
    with pytest.raises(PlanError, match=rf"not clean; got {left} there \(make -C .* mrproper"):
        host_kernel.version_of(tree)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_kernel, "PROGRAMS", {"sh": "dash", "no-rsync": "rsync", "no-depmod": "kmod"})
    with pytest.raises(TestbedError, match=r"want Debian's packages rsync, kmod.*apt-get install rsync kmod"):
        host_kernel.check_programs()


def test_the_lab_s_fragment_is_shared() -> None:
    """Devices, queueing disciplines, congestion controls; nothing of the lab's own, and each option once."""
    lines = host_config.shared().splitlines()
    options = [line for line in lines if line.startswith("CONFIG_")]
    for name in ("TCP_CONG_BBR", "TCP_CONG_DCTCP", "NET_SCH_HTB", "NET_SCH_NETEM", "NET_SCH_FQ", "VETH"):
        assert f"CONFIG_{name}=y" in options
    assert not any("UML" in line or "is not set" in line or "INIT_STACK" in line for line in lines)
    must, may = host_config.fragments(types=False)
    every = [*options, *(line for file in (*must, *may) for line in make.options(file))]
    assert len(every) == len({line.partition("=")[0] for line in every})
    assert 'CONFIG_SYSTEM_TRUSTED_KEYS=""' in every


def test_a_section_that_is_gone_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "fragment.config").write_text(
        "# Hosts, links and switch.\nCONFIG_VETH=y\n", encoding="utf-8"
    )
    monkeypatch.setattr(checkout, "lab", lambda: tmp_path)
    with pytest.raises(TestbedError, match="got 1 of them"):
        host_config.shared()


def test_modules_are_read_as_they_are_written() -> None:
    assert host_config.modules_in(host_config.lsmod({"e1000e", "ext4"})) == {"e1000e", "ext4"}


def test_options_that_a_tree_can_not_have(tmp_path: Path) -> None:
    fragment = tmp_path / "a.config"
    fragment.write_text('CONFIG_A=y\nCONFIG_B=y\nCONFIG_KEYS=""\nCONFIG_NAME="-mine"\n', encoding="utf-8")
    assert host_kernel._missing({"CONFIG_A=y", 'CONFIG_NAME=""'}, [fragment]) == ["CONFIG_B=y", 'CONFIG_NAME="-mine"']


def test_what_determines_a_package(tree: Path) -> None:
    first = Wanted("mine", tree, "6.12.117", "CONFIG_A=y\n", frozenset({"ext4"}))
    key = host_kernel._key(first)
    assert host_kernel._key(first) == key
    (tree / "a.c").write_text("int a;\n", encoding="utf-8")
    assert host_kernel._key(first) != key


def test_a_package_is_built_once(tree: Path) -> None:
    wanted = Wanted("mine", tree, "6.12.117", "CONFIG_A=y\n", None)
    place = host_kernel.home(tree, "mine")
    place.mkdir(parents=True)
    (place / "x.deb").touch()
    key = host_kernel._key(wanted)
    said = f'{{"key": "{key}", "file": "x.deb", "release": "6.12.117-testctl-mine", "lacking": []}}'
    (place / host_kernel.BUILT).write_text(said, encoding="utf-8")
    found = host_kernel.build(wanted, lambda *_: None, 1)
    assert (found.path, found.release, found.new) == (place / "x.deb", "6.12.117-testctl-mine", False)


def test_what_the_last_build_knew_of_hosts(tree: Path) -> None:
    assert host_kernel.known(tree, "mine") == ("", frozenset())
    place = host_kernel.home(tree, "mine")
    place.mkdir(parents=True)
    (place / host_kernel.CONFIG).write_text("CONFIG_A=y\n", encoding="utf-8")
    (place / host_kernel.MODULES).write_text(host_config.lsmod({"ext4"}), encoding="utf-8")
    assert host_kernel.known(tree, "mine") == ("CONFIG_A=y\n", frozenset({"ext4"}))
