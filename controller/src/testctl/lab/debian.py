# SPDX-License-Identifier: Apache-2.0
"""Kernel sources of Debian's newer releases, by a second configuration of apt: nothing of the machine's own is changed.

Sources list, package lists and downloads lie below the cache.  The archive and its key are from the machine's own
sources list; apt checks signatures and hashes as always.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.lab import source
from testctl.system import checkout
from testctl.system.subprocesses import run
from testctl.system.temporary import temporary

SUITES = ("trixie-backports", "sid")
"""Suites to look in unless others are named."""

_PACKAGE = "linux-source-"
_NAME = re.compile(r"[0-9]+(\.[0-9]+)+")
_SUITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9./-]*")
_OF_DOWNLOADS = re.compile(r"Acquire::(?!IndexTargets|Languages)[\w:-]+[\w-] ")
"""What the machine's own configuration says of downloads: a proxy, whether an old archive may be used."""
_ALWAYS = ("stable", "oldstable", "testing", "unstable", "sid")
OS_RELEASE = Path("/etc/os-release")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""Debian's keys; where it is missing, apt uses the machine's trusted ones."""
TIMEOUT_S = 1800.0
_NOT_WHY = "E: Some index files failed to download"
"""apt's last error, which it prints for every failure."""


@dataclass(frozen=True)
class Archive:
    """A Debian archive of the machine's own sources list: its address, and options such as signed-by=FILE."""

    uri: str
    options: str = ""


@dataclass(frozen=True)
class Available:
    """A version of the kernel whose source can be downloaded: 7.3, the package's version, the suite that has it."""

    name: str
    version: str
    suite: str


@dataclass(frozen=True)
class Fetched:
    """A tarball in the cache; `new` unless the same version was there."""

    path: Path
    available: Available
    new: bool


def own_archive() -> Archive:
    """The first archive of the machine's sources list for its own release.  Raises TestbedError if there is none."""
    _want("apt-get", "apt")
    fields = "|".join(f"$({field})" for field in ("RELEASE", "COMPONENT", "REPO_URI"))
    lines = run(["apt-get", "indextargets", "--format", fields]).splitlines()
    here = re.search(r"^VERSION_CODENAME=\"?(\w+)", OS_RELEASE.read_text("utf-8"), re.MULTILINE)
    releases = {*_ALWAYS, *([here[1]] if here else [])}
    targets = [line.split("|", 2) for line in lines]
    uris = [uri for release, component, uri in targets if component == "main" and release in releases]
    if not uris:
        raise TestbedError(
            f"apt: want a source of {' or '.join(sorted(releases))} with the component main in /etc/apt; "
            "there is none; name a kernel tree with --source DIR"
        )
    return Archive(uris[0], f"signed-by={KEYRING}" if KEYRING.is_file() else "")


class SecondApt:
    """apt with sources, lists and downloads of its own.

    suites: those to look in, such as trixie-backports
    """

    def __init__(self, suites: Sequence[str] = (), archive: Archive | None = None) -> None:
        self.suites = tuple(suites) or SUITES
        if wrong := [suite for suite in self.suites if not _SUITE.fullmatch(suite)]:
            raise PlanError(f"suite {wrong[0]!r}: want the name of a Debian suite, such as trixie-backports or sid")
        self.archive = archive or own_archive()
        self.home = checkout.cache_dir() / "apt"
        self._write()

    def update(self) -> None:
        """Download the suites' lists of packages.  Raises TestbedError with apt's own error."""
        try:
            self._run("apt-get", "update", "-qq")
        except TestbedError as error:
            raise TestbedError(
                f"the lists of {', '.join(self.suites)} can't be had from {self.archive.uri}: "
                f"{_first_error(str(error))}; is there a network? another suite: --suite NAME"
            ) from error

    def available(self) -> list[Available]:
        """What can be downloaded, newest first; of a version that several suites have, the newest package."""
        names = self._run("apt-cache", "pkgnames", _PACKAGE).split()
        wanted = [name for name in names if _NAME.fullmatch(name.removeprefix(_PACKAGE))]
        if not wanted:
            return []
        newest: dict[str, Available] = {}
        for line in self._run("apt-cache", "madison", *wanted).splitlines():
            package, version, place = (part.strip() for part in line.split("|"))
            suite = place.split()[1].partition("/")[0]
            name = package.removeprefix(_PACKAGE)
            newest.setdefault(name, Available(name, version, suite))
        return sorted(newest.values(), key=lambda kernel: [int(part) for part in kernel.name.split(".")], reverse=True)

    def fetch(self, name: str) -> Fetched:
        """Download the source of a version into the cache.  Raises PlanError, TestbedError if it can't be had."""
        if not _NAME.fullmatch(name):
            raise PlanError(f"lab get {name!r}: want a kernel's version, such as 7.3")
        available = self.available()
        wanted = next((kernel for kernel in available if kernel.name == name), None)
        if wanted is None:
            have = ", ".join(kernel.name for kernel in available) or "none"
            raise TestbedError(
                f"{_PACKAGE}{name} is not in {', '.join(self.suites)}, which have {have}; another suite: --suite NAME"
            )
        tarball = source.downloads() / f"{_PACKAGE}{name}.tar.xz"
        note = tarball.with_name(f"{_PACKAGE}{name}.version")
        if tarball.is_file() and note.is_file() and note.read_text(encoding="utf-8").strip() == wanted.version:
            return Fetched(tarball, wanted, new=False)
        _want("dpkg-deb", "dpkg")
        durable.make_directory(tarball.parent)
        with temporary(".get-", tarball.parent) as place:
            self._run("apt-get", "download", f"{_PACKAGE}{name}={wanted.version}", cwd=place)
            (package,) = place.glob("*.deb")
            run(["dpkg-deb", "-x", str(package), str(place)], timeout_s=TIMEOUT_S)
            unpacked = place / "usr" / "src" / tarball.name
            if not unpacked.is_file():
                raise TestbedError(f"{package.name}: want /usr/src/{tarball.name} in this package; it is not there")
            note.unlink(missing_ok=True)
            durable.publish(unpacked, tarball)
        durable.write(note, wanted.version.encode())
        return Fetched(tarball, wanted, new=True)

    def _write(self) -> None:
        """The second configuration: where everything lies, and what the machine's own says of downloads (a proxy)."""
        for name in ("lists/partial", "cache/archives/partial", "none"):
            durable.make_directory(self.home / name)
        options = f"[{self.archive.options}] " if self.archive.options else ""
        lines = [f"deb {options}{self.archive.uri} {suite} main\n" for suite in self.suites]
        durable.write(self.home / "sources.list", "".join(lines).encode())
        durable.write(self.home / "status", b"")
        places = {
            "Dir::Etc::SourceList": "sources.list", "Dir::Etc::SourceParts": "none", "Dir::Etc::Parts": "none",
            "Dir::Etc::Main": "none/apt.conf", "Dir::Etc::PreferencesParts": "none", "Dir::State": ".",
            "Dir::State::Lists": "lists", "Dir::State::status": "status", "Dir::Cache": "cache", "Dir::Log": ".",
        }  # fmt: skip
        settings = [f'{key} "{self.home / name}";' for key, name in places.items()]
        settings += [f'Dir::Etc::Preferences "{self.home}/none/preferences";', 'Acquire::Languages "none";']
        # root keeps its rights, since the cache is root's own; others have no rights to give up.
        user = "root" if os.geteuid() == 0 else ""
        settings += ['APT::Update::Error-Mode "any";', f'APT::Sandbox::User "{user}";']
        own = [line for line in run(["apt-config", "dump"]).splitlines() if _OF_DOWNLOADS.match(line)]
        durable.write(self.home / "apt.conf", "\n".join([*own, *settings, ""]).encode())

    def _run(self, *argv: str, cwd: Path | None = None) -> str:
        environment = (f"APT_CONFIG={self.home / 'apt.conf'}", "LC_ALL=C.UTF-8")
        return run(["env", *environment, *argv], timeout_s=TIMEOUT_S, cwd=cwd)


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    errors = [line[line.index("E: ") :] for line in lines if "E: " in line]
    causes = [error for error in errors if not error.startswith(_NOT_WHY)]
    return [*causes, *errors, *lines[-1:]][0].rstrip(".")


def _want(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise TestbedError(f"{program} is not here (Debian's package {package}); name a kernel tree with --source DIR")
