# SPDX-License-Identifier: Apache-2.0
"""Kernel sources: Debian's packages by version, any tree, or a git revision of one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.lab import git_tree, tree_files
from testctl.system import checkout
from testctl.system.subprocesses import run

DEBIAN_SOURCES = Path("/usr/src")
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}"
"""Valid names of a kernel; the name becomes part of file names."""

UNUSED = ("Documentation/*/*.rst", "Documentation/*/*.txt", "Documentation/*/*.yaml",
          "arch/[!ux]*.[chS]", "arch/*.dts*", "sound/*.[ch]", "drivers/[!bcinpt]*.[ch]", "drivers/i[!o]*.[ch]",
          "drivers/net/*/*.[ch]", "tools/perf/*", "tools/testing/*")  # fmt: skip
"""Patterns of a tarball's files that no kernel for User Mode Linux is built from: two thirds of them (each Kconfig and
Makefile is read)."""

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "trace": ("trace",), "debug": ("trace", "debug"), "coverage": ("coverage",), "mutants": ("mutants",)
}  # fmt: skip
"""Kernels of the same source with more in their configuration: the parts that each has of lab/kernel/variants."""


@dataclass(frozen=True)
class KernelSource:
    """A kernel tree under the name that a plan's `kernel` tuple uses.

    origin    a tarball, or the directory of a tree (which is copied, never changed)
    revision  the id of a commit of that directory's repository; "": the files as they are
    variant   one of VARIANTS; "": the kernel that plans get
    replaced  name and text of files that the copy of a directory has in place of its own
    """

    name: str
    origin: Path
    revision: str = ""
    variant: str = ""
    replaced: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_tree(self) -> bool:
        """Whether it is a tree of the user's, whose objects are kept between builds."""
        return self.origin.is_dir()

    @property
    def title(self) -> str:
        return self.origin.name + (f"@{self.revision[:12]}" if self.revision else "")

    def fingerprint(self) -> str:
        """SHA-256 of the tarball, the id of git's tree, or a hash of the files' names, sizes and times.

        A checkout without changes has git's tree of its commit.
        """
        if self.replaced:
            digest = hashlib.sha256(replace(self, replaced=()).fingerprint().encode())
            for name, text in self.replaced:
                digest.update(f"{name} {len(text)}\n".encode() + text)
            return digest.hexdigest()
        if not self.is_tree:
            return _digest_of_file(self.origin)
        if commit := self.revision or git_tree.unchanged(self.origin):
            return f"git {git_tree.tree_id(self.origin, commit)}"
        digest = hashlib.sha256()
        for name, (size, mtime_ns) in sorted(tree_files.listing(self.origin).items()):
            digest.update(f"{name} {size} {mtime_ns}\n".encode())
        return digest.hexdigest()

    def unpack(self, where: Path) -> None:
        """Unpack the files that a build needs at `where`, which does not exist yet."""
        where.mkdir()
        top = self.origin.name.removesuffix(".tar.xz")
        unused = (f"--exclude={top}/{pattern}" for pattern in UNUSED)
        argv = ["tar", "xf", str(self.origin), "--use-compress-program=xz --threads=0", "--strip-components=1"]
        run([*argv, "--anchored", "--wildcards", *unused, "-C", str(where)], timeout_s=1800)


def split_revision(text: str) -> tuple[Path, str]:
    """DIR or DIR@REV of a --source option: the directory, and the revision or "".

    Raises PlanError if no part of it before an @ is a directory.
    """
    ends = [len(text), *(match.start() for match in re.finditer("@", text))]
    for end in ends:
        if text[:end] and Path(text[:end]).is_dir():
            if end + 1 == len(text):
                raise PlanError(f"--source {text}: want a git revision after the @; got none")
            return Path(text[:end]), text[end + 1 :]
    raise PlanError(f"--source {text}: want a kernel tree as DIR or DIR@REV; there is no such directory")


def find(name: str, directory: Path | None = None, revision: str = "", variant: str = "") -> KernelSource:
    """The source for a kernel's name; `directory` is any kernel tree, `revision` any git revision of it.

    The variant of a version is in its name: 6.12-trace.

    Raises PlanError for an invalid name or revision, TestbedError if the source does not exist.
    """
    if not re.fullmatch(NAME, name):
        raise PlanError(f"kernel {name!r}: want a version such as 6.12, or a name of letters, digits, '.', '_', '-'")
    if directory is not None:
        return replace(_tree(name, directory.resolve(), revision), variant=variant)
    version, in_name = split_variant(name)
    tarball = tarball_of(version)
    if tarball is None:
        have = ", ".join(sorted(available())) or "none"
        raise TestbedError(
            f"kernel {name}: no source at {DEBIAN_SOURCES / _file(version)} (there are: {have}); "
            f"install it with: apt-get install linux-source-{version}, download it with: testctl lab get {version}, "
            "or name a tree with --source DIR"
        )
    return KernelSource(name, tarball, variant=in_name)


def split_variant(name: str) -> tuple[str, str]:
    """("6.12", "trace") of 6.12-trace; ("6.12", "") of 6.12."""
    version, _, last = name.rpartition("-")
    return (version, last) if version and last in VARIANTS else (name, "")


def _tree(name: str, directory: Path, revision: str) -> KernelSource:
    if revision:
        commit = git_tree.commit_id(directory, revision)
        if not git_tree.has(directory, commit, "arch/um"):
            raise TestbedError(f"kernel {name}: {directory}@{revision} is not a kernel tree: it has no arch/um")
        return KernelSource(name, directory, commit)
    if not (directory / "arch" / "um").is_dir():
        raise TestbedError(f"kernel {name}: {directory} is not a kernel tree: it has no arch/um")
    return KernelSource(name, directory)


def downloads() -> Path:
    """Where `testctl lab get` keeps tarballs."""
    return checkout.cache_dir() / "sources"


def tarball_of(name: str) -> Path | None:
    """The tarball of a version: of the installed package, or else the downloaded one."""
    paths = (place / _file(name) for place in (DEBIAN_SOURCES, downloads()))
    return next((path for path in paths if path.is_file()), None)


def available() -> list[str]:
    """The versions whose source is installed or downloaded."""
    paths = (path for place in (DEBIAN_SOURCES, downloads()) for path in place.glob("*.tar.xz"))
    matches = (re.fullmatch(r"linux-source-([0-9.]+)\.tar\.xz", path.name) for path in paths)
    return sorted({match[1] for match in matches if match})


def _file(name: str) -> str:
    return f"linux-source-{name}.tar.xz"


def _digest_of_file(path: Path) -> str:
    """SHA-256 of a large file, cached as long as the file is unchanged."""
    stat = path.stat()
    key = f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
    memo = checkout.cache_dir() / "digests.json"
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    if key not in known:
        with path.open("rb") as file:
            known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        durable.make_directory(memo.parent)
        durable.write(memo, json.dumps(known).encode())
    return str(known[key])
