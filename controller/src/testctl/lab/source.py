# SPDX-License-Identifier: Apache-2.0
"""Kernel sources: Debian's packages by version, or any tree."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.system import checkout
from testctl.system.subprocesses import run

DEBIAN_SOURCES = Path("/usr/src")
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}"
"""Valid names of a kernel; the name becomes part of file names."""


@dataclass(frozen=True)
class KernelSource:
    """A kernel tree under the name that a plan's `kernel` tuple uses.

    origin  a tarball, or the directory of a tree (which is copied, never changed)
    """

    name: str
    origin: Path

    @property
    def package(self) -> str:
        return f"linux-source-{self.name}"

    def fingerprint(self) -> str:
        """SHA-256 of the tarball, or of the names, sizes and times of the tree's files."""
        if self.origin.is_file():
            return _digest_of_file(self.origin)
        digest = hashlib.sha256()
        for path in sorted(self.origin.rglob("*")):
            if path.is_file() and ".git" not in path.parts:
                stat = path.stat()
                digest.update(f"{path.relative_to(self.origin)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def unpack(self, where: Path) -> None:
        """Put a private copy of the tree at `where`, which does not exist yet."""
        if self.origin.is_dir():
            shutil.copytree(self.origin, where, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            return
        where.mkdir()
        run(["tar", "xf", str(self.origin), "--strip-components=1", "-C", str(where)], timeout_s=1800)


def find(name: str, directory: Path | None = None) -> KernelSource:
    """The source for a kernel's name; `directory` is any kernel tree.

    Raises PlanError for an invalid name, TestbedError if the source does not exist.
    """
    if not re.fullmatch(NAME, name):
        raise PlanError(f"kernel {name!r}: want a version such as 6.12, or a name of letters, digits, '.', '_', '-'")
    if directory is not None:
        if not (directory / "arch" / "um").is_dir():
            raise TestbedError(f"kernel {name}: {directory} is not a kernel tree: it has no arch/um")
        return KernelSource(name, directory.resolve())
    tarball = DEBIAN_SOURCES / f"linux-source-{name}.tar.xz"
    if not tarball.is_file():
        have = ", ".join(sorted(available())) or "none"
        raise TestbedError(
            f"kernel {name}: no source at {tarball} (there are: {have}); "
            f"install it with: apt-get install linux-source-{name}, or name a tree with --source DIR"
        )
    return KernelSource(name, tarball)


def available() -> list[str]:
    """The versions whose Debian source package is installed."""
    found = (re.fullmatch(r"linux-source-([0-9.]+)\.tar\.xz", path.name) for path in DEBIAN_SOURCES.glob("*.tar.xz"))
    return [match[1] for match in found if match]


def _digest_of_file(path: Path) -> str:
    """SHA-256 of a large file, cached as long as the file is unchanged."""
    stat = path.stat()
    key = f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
    memo = checkout.cache_dir() / "digests.json"
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    if key not in known:
        with path.open("rb") as file:
            known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        durable.make_directory(memo.parent)
        durable.write(memo, json.dumps(known).encode())
    return str(known[key])
