# SPDX-License-Identifier: Apache-2.0
"""A directory of a kernel's source, taken out of what the kernel is built from."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.lab import git_tree
from testctl.lab.source import KernelSource
from testctl.system import checkout
from testctl.system.subprocesses import run
from testctl.system.temporary import cache_entry


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
        cache_entry(kept, partial(_unpack, source, name))
    return kept / name if (kept / name).is_dir() else None


def _unpack(source: KernelSource, name: str, where: Path) -> None:
    """Write the part below `where`; nothing is written where the source has none."""
    if source.revision:
        if git_tree.has(source.origin, source.revision, name):
            packed = where.with_name("part.tar")
            git_tree.archive(source.origin, source.revision, name, packed)
            run(["tar", "xf", str(packed), "-C", str(where)], timeout_s=300)
        return
    argv = ["env", "LC_ALL=C", "tar", "xf", str(source.origin), "--strip-components=1", "-C", str(where)]
    try:
        run([*argv, "--wildcards", f"*/{name}"], timeout_s=1800)
    except TestbedError as error:
        if "Not found in archive" not in str(error):
            raise
