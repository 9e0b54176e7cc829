# SPDX-License-Identifier: Apache-2.0
"""The manifest of a point: name, size and sha256 of each of its files but verdict.json, which holds it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testctl.results import layout

Manifest = dict[str, dict[str, Any]]
"""{"packets.parquet": {"size": bytes, "sha256": hex}}; a name is relative to the point's directory."""


def manifest_of(directory: Path) -> Manifest:
    """The manifest of what lies in a point's directory.  Raises OSError."""
    return {name: {"size": path.stat().st_size, "sha256": _sha256(path)} for name, path in _files(directory).items()}


def difference(directory: Path, manifest: Any) -> str:
    """The first difference between a point's directory and its manifest; "" if there is none.  Raises OSError."""
    if not isinstance(manifest, Mapping) or not all(isinstance(entry, Mapping) for entry in manifest.values()):
        return f"{layout.VERDICT}: want a manifest of the files; got none"
    there = _files(directory)
    if missing := sorted(manifest.keys() - there.keys()):
        return f"{missing[0]} is missing"
    if unknown := sorted(there.keys() - manifest.keys()):
        return f"{unknown[0]} is not in the manifest"
    for name, path in there.items():
        if not stat.S_ISREG(path.lstat().st_mode):
            return f"{name}: want a plain file"
        size, want = path.stat().st_size, manifest[name].get("size")
        if size != want:
            return f"{name}: want {want} bytes; got {size}"
        if _sha256(path) != manifest[name].get("sha256"):
            return f"{name}: want sha256 {str(manifest[name].get('sha256'))[:16]}…; got another"
    return ""


def _files(directory: Path) -> dict[str, Path]:
    """All files below a directory except verdict.json, sorted by name."""
    digests = {}
    for folder, folders, names in os.walk(directory, onerror=_raise):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for path in (Path(folder, name) for name in (*names, *links)):
            digests[path.relative_to(directory).as_posix()] = path
    digests.pop(layout.VERDICT, None)
    return dict(sorted(digests.items()))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _raise(error: OSError) -> None:
    raise error
