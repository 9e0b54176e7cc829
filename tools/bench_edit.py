# SPDX-License-Identifier: Apache-2.0
"""What a changed line of a kernel's tree costs: the rebuild, and the first result of a plan of one point."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench_flow import children_s

TARBALL = Path("/usr/src/linux-source-6.12.tar.xz")
CHANGED = "net/ipv4/tcp_input.c"
PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - ["switch:receiver", rate, 100mbit]
  - [bulk, duration, 1s]
"""
BUILD = (
    "import os, sys; from testctl.lab.tree_kernel import build_tree; "
    "build_tree(sys.argv[1], lambda *_: None, os.cpu_count() or 1)"
)


def edit(where: Path) -> None:
    """A tree in a cache of its own: built whole, rebuilt after one line, and a plan after another."""
    if not TARBALL.is_file():
        print(f"edit: left out: there is no {TARBALL} (Debian's package {TARBALL.name.removesuffix('.tar.xz')})")
        return
    tree, plan = where / "tree", where / "one.yaml"
    tree.mkdir()
    subprocess.run(["tar", "xf", str(TARBALL), "--strip-components=1", "-C", str(tree)], check=True)
    plan.write_text(PLAN, encoding="utf-8")
    environment = os.environ | {"TESTCTL_CACHE": str(where / "cache")}
    build = [sys.executable, "-c", BUILD, str(tree)]
    _timed("the whole tree, built", build, environment)
    _change(tree, 1)
    _timed(f"one line of {CHANGED} changed, rebuilt", build, environment)
    _change(tree, 2)
    run = [sys.executable, "-m", "testctl.cli.main", "run", str(plan), "--source", str(tree)]
    run += ["--out", str(where / "run")]
    _timed("another, and a plan of one point run on it with its report", run, environment)


def _change(tree: Path, number: int) -> None:
    """One line more in the file, which the compiler has to read."""
    with (tree / CHANGED).open("a", encoding="utf-8") as file:
        file.write(f"\nstatic const int bench_{number} __maybe_unused = {number};\n")


def _timed(what: str, argv: list[str], environment: dict[str, str]) -> None:
    before, began = children_s(), time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    print(f"edit: {what}: {time.perf_counter() - began:.1f} s ({children_s() - before:.1f} s of processor time)")
