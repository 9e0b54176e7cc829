# SPDX-License-Identifier: Apache-2.0
"""Kernel sources of another Debian, by the machine's real apt and an archive that the test makes."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from testctl.lab.debian import Archive, Available, SecondApt, own_archive
from testctl.lab.source import find
from testctl_agent.spec.errors import PlanError, TestbedError

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt: not a Debian")
TARBALL = b"a kernel's source"


def package(repository: Path, version: str, revision: str, has: str = "") -> str:
    """A package linux-source-VERSION in the pool; its entry in the list of packages."""
    name = f"linux-source-{version}"
    tree = repository / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "usr/src").mkdir(parents=True)
    (tree / "usr/src" / (has or f"{name}.tar.xz")).write_bytes(TARBALL)
    (tree / "DEBIAN").mkdir()
    control = (
        f"Package: {name}\nVersion: {revision}\nArchitecture: all\nMaintainer: t <t@example.org>\nDescription: t\n"
    )
    (tree / "DEBIAN/control").write_text(control)
    file = repository / f"{name}_{revision}_all.deb"
    subprocess.run(["dpkg-deb", "-b", "--root-owner-group", tree, file], check=True, capture_output=True)
    content = file.read_bytes()
    return f"{control}Filename: {file.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n\n"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """An archive with 7.2 in the suite `next` and 7.3 in both; not signed, so that its user has to trust it."""
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    repository = tmp_path / "debian"
    repository.mkdir()
    for suite, entries in (
        ("next", package(repository, "7.2", "7.2.13-1") + package(repository, "7.3", "7.3.9-1")),
        ("new-backports", package(repository, "7.3", "7.3.4-1~bpo13+1") + package(repository, "7.4", "7.4-1", "none")),
    ):
        place = repository / "dists" / suite
        (place / "main/binary-amd64").mkdir(parents=True)
        lists = {"Packages": entries.encode(), "Packages.gz": gzip.compress(entries.encode(), mtime=0)}
        hashes = ""
        for name, content in lists.items():
            (place / "main/binary-amd64" / name).write_bytes(content)
            hashes += f" {hashlib.sha256(content).hexdigest()} {len(content)} main/binary-amd64/{name}\n"
        (place / "Release").write_text(
            f"Suite: {suite}\nCodename: {suite}\nComponents: main\nArchitectures: amd64 all\n"
            f"Date: Mon, 23 Nov 2020 07:00:00 UTC\nSHA256:\n{hashes}"
        )
    return Archive(f"file:{repository}", "trusted=yes arch=amd64")


def second(archive: Archive, *suites: str) -> SecondApt:
    apt = SecondApt(suites or ("new-backports", "next"), archive)
    apt.update()
    return apt


def machine() -> dict[str, int]:
    """What apt changes of a machine, and when it did."""
    places = [Path("/var/lib/apt/lists"), Path("/var/cache/apt"), Path("/var/lib/dpkg/status"), Path("/etc/apt")]
    return {str(place): place.stat().st_mtime_ns for place in places if place.exists()}


def test_a_source_is_downloaded_and_found_by_its_version(archive: Archive, tmp_path: Path) -> None:
    before = machine()
    apt = second(archive)
    assert apt.available() == [
        Available("7.4", "7.4-1", "new-backports"),
        Available("7.3", "7.3.9-1", "next"),
        Available("7.2", "7.2.13-1", "next"),
    ]
    got = apt.fetch("7.3")
    assert got.new
    assert got.path == tmp_path / "cache/sources/linux-source-7.3.tar.xz"
    assert got.path.read_bytes() == TARBALL
    assert find("7.3").origin == got.path
    assert not apt.fetch("7.3").new
    assert sorted(path.name for path in got.path.parent.iterdir()) == [
        "linux-source-7.3.tar.xz", "linux-source-7.3.version",
    ]  # fmt: skip
    assert machine() == before


def test_another_suite_has_another_version(archive: Archive) -> None:
    second(archive).fetch("7.3")
    got = second(archive, "new-backports").fetch("7.3")
    assert (got.new, got.available.version) == (True, "7.3.4-1~bpo13+1")


def test_what_can_not_be_had(archive: Archive, tmp_path: Path) -> None:
    apt = second(archive, "next")
    with pytest.raises(TestbedError, match=r"linux-source-9\.9 is not in next, which have 7\.3, 7\.2; another suite"):
        apt.fetch("9.9")
    with pytest.raises(PlanError, match=r"lab get '\.\./7': want a kernel's version, such as 7\.3"):
        apt.fetch("../7")
    with pytest.raises(TestbedError, match="the lists of nosuch can't be had from file:"):
        second(archive, "nosuch")
    with pytest.raises(PlanError, match="suite 'a b': want the name of a Debian suite"):
        SecondApt(["a b"], archive)
    with pytest.raises(
        TestbedError, match=r"linux-source-7\.4_7\.4-1_all\.deb: want /usr/src/linux-source-7\.4\.tar\.xz"
    ):
        second(archive).fetch("7.4")
    with pytest.raises(TestbedError, match=r"kernel 7\.4: no source at .*testctl lab get 7\.4"):
        find("7.4")
    shutil.rmtree(tmp_path / "debian/dists")
    with pytest.raises(TestbedError, match="is there a network"):
        apt.update()


@pytest.mark.skipif(os.path.exists("/etc/debian_version") is False, reason="needs Debian's own sources list")
def test_the_machines_own_archive_is_the_one_of_its_release() -> None:
    own = own_archive()
    assert own.uri.rstrip("/").endswith("debian")
