# SPDX-License-Identifier: Apache-2.0
"""A directory of a kernel's source, taken out of what the kernel is built from."""

from __future__ import annotations

import hashlib
from pathlib import Path

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import durable

from testctl.lab import git_tree
from testctl.lab.source import KernelSource
from testctl.system import checkout
from testctl.system.subprocesses import run
from testctl.system.temporary import temporary


def part_of(source: KernelSource, name: str) -> Path | None:
    """The directory `name` of a source, as a directory that is kept in the cache; None if it has none.

    Of a tree without a revision it is the tree's own.  Raises TestbedError.
    """
    if source.is_tree and not source.revision:
        own = source.origin / name
        return own if own.is_dir() else None
    key = hashlib.sha256(f"{source.fingerprint()} {name}".encode()).hexdigest()[:16]
    kept = checkout.cache_dir() / "parts" / f"{source.title.partition('@')[0]}-{key}"
    if not kept.is_dir():
        durable.make_directory(kept.parent)
        with temporary(".new-", kept.parent) as place:
            fresh = place / "part"
            fresh.mkdir()
            _unpack(source, name, place, fresh)
            try:
                durable.publish(fresh, kept)
            except OSError:
                if not kept.is_dir():  # not another process that was first
                    raise
    return kept / name if (kept / name).is_dir() else None


def _unpack(source: KernelSource, name: str, place: Path, where: Path) -> None:
    """Write the part below `where`; nothing is written where the source has none."""
    if source.revision:
        if git_tree.has(source.origin, source.revision, name):
            git_tree.archive(source.origin, source.revision, name, place / "part.tar")
            run(["tar", "xf", str(place / "part.tar"), "-C", str(where)], timeout_s=300)
        return
    argv = ["env", "LC_ALL=C", "tar", "xf", str(source.origin), "--strip-components=1", "-C", str(where)]
    try:
        run([*argv, "--wildcards", f"*/{name}"], timeout_s=1800)
    except TestbedError as error:
        if "Not found in archive" not in str(error):
            raise
