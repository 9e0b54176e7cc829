# SPDX-License-Identifier: Apache-2.0
"""versions.json: the versions that made the results."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from testctl.system import checkout

_TOOLS = ("numpy", "pyarrow", "duckdb", "vl-convert-python", "grpcio", "pyyaml", "allpairspy")


def collect_versions(**more: Any) -> dict[str, Any]:
    """Versions of the code (with its git commit), of Python and of the libraries; `more` is added (kernel, tools)."""
    return {
        "testctl": _version("testctl"),
        "testctl_agent": _version("testctl-agent"),
        # An installed package has none, although its environment may lie in another repository.
        "commit": (not checkout.installed() and git_commit(Path(__file__))) or "unknown",
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libraries": {name: _version(name) for name in _TOOLS},
        **{key: dict(value) if isinstance(value, Mapping) else value for key, value in more.items()},
    }


def git_commit(inside: Path) -> str | None:
    """The commit that is checked out around a path, read from .git's files; None outside of a repository."""
    for parent in inside.resolve().parents:
        git = parent / ".git"
        if git.is_file():  # a worktree: "gitdir: PATH"
            git = parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        if git.is_dir():
            head = git / "HEAD"
            text = head.read_text(encoding="utf-8").strip() if head.exists() else ""
            if not text.startswith("ref:"):
                return text or None
            ref = text.removeprefix("ref:").strip()
            common = git / "commondir"
            roots = [git, git / common.read_text(encoding="utf-8").strip()] if common.exists() else [git]
            for root in roots:
                if (root / ref).exists():
                    return (root / ref).read_text(encoding="utf-8").strip()
                packed = root / "packed-refs"
                if packed.exists():
                    for line in packed.read_text(encoding="utf-8").splitlines():
                        if line.endswith(" " + ref):
                            return line.split(" ", 1)[0]
            return None
    return None


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"
