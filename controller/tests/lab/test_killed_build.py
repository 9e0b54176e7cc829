# SPDX-License-Identifier: Apache-2.0
"""A build of a kernel that is killed, the lab's or one for hosts: it ends, and no other one works in its objects before
it has.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.leftovers import marked

pytestmark = pytest.mark.long

LAB = """
import sys
from pathlib import Path
from testctl.lab import kernel
from testctl.lab.source import find

kernel.put_sources = lambda *_: None
kernel.apply_edits = lambda *_: []  # they want the files of a kernel

def main():
    kernel.build(find("mine", Path(sys.argv[1])), lambda *step: None)

main()
"""
HOST = """
import sys
from pathlib import Path
from testctl_rack import host_kernel

config = "CONFIG_A=y\\n" * 9
wanted = host_kernel.Wanted("mine", Path(sys.argv[1]), "6.12", config, frozenset({"ext4"}))
print(host_kernel.build(wanted, lambda *step: None, 1).path)
"""
BUILDS = {"lab": LAB, "host": HOST}
MAKEFILE = (
    "defconfig olddefconfig localmodconfig bindeb-pkg all:\n\t@$(CURDIR)/step $@ $(O)\nall: step\n.DEFAULT_GOAL = all\n"
)
STEP = """#!/usr/bin/env python3
import os, pathlib, signal, sys, time
def log(word):
    with open(os.environ["LOG"], "a") as file:
        file.write(f"{word} {os.getpid()}\\n")
objects = pathlib.Path(sys.argv[2])
if sys.argv[1] == "defconfig":
    (objects / ".config").write_text("")
if os.environ.get("STUBBORN"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
log("begin")
package = objects.parent / "linux-image-6.12-testctl-mine_1_amd64.deb"
if sys.argv[1] == os.environ.get("SLOW"):
    (objects / "part.o").write_text("half of it")
    package.write_text("half of it")
    time.sleep(float(os.environ["LONG_S"]))
if sys.argv[1] == "bindeb-pkg":
    (objects / "include/config").mkdir(parents=True, exist_ok=True)
    (objects / "include/config/kernel.release").write_text("6.12-testctl-mine\\n")
    package.write_text("whole")
log("end")
"""
MERGE = '#!/bin/sh\nshift 3\nconfig=$1; shift\ncat "$@" > "$config"\n'
"""merge_config.sh -m -O OBJECTS CONFIG FRAGMENT…"""


@pytest.fixture
def begin(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a build of a tree whose make waits at a step."""
    tree = tmp_path / "tree"
    for name, text in {
        "arch/um/Kconfig": "", "Makefile": MAKEFILE, "step": STEP, "scripts/kconfig/merge_config.sh": MERGE
    }.items():  # fmt: skip
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
        (tree / name).chmod(0o755)
    for name, text in BUILDS.items():
        (tmp_path / f"{name}.py").write_text(text)

    def begin(kind: str, slow: str, long_s: float, stubborn: str = "") -> subprocess.Popen[bytes]:
        if kind == "host":
            pytest.importorskip("testctl_rack")
        env = os.environ | {
            "TESTCTL_CACHE": str(tmp_path / "cache"), "LOG": str(tmp_path / "log"), "SLOW": slow,
            "LONG_S": str(long_s), "STUBBORN": stubborn,
        }  # fmt: skip
        argv = [sys.executable, str(tmp_path / f"{kind}.py"), str(tree)]
        return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    return begin


def steps(where: Path) -> list[tuple[str, int]]:
    text = (where / "log").read_text() if (where / "log").exists() else ""
    return [(word, int(pid)) for word, pid in map(str.split, text.splitlines())]


def until(true: Callable[[], bool], limit_s: float = 60.0) -> bool:
    end = time.monotonic() + limit_s
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def waits(where: Path, step: str) -> bool:
    """Whether make is at the step that takes long; the ones before it have ended."""
    return bool(parts(where)) and steps(where)[-1][0] == "begin"


def parts(where: Path) -> list[Path]:
    """Files of which a killed step has written a half."""
    return list((where / "cache").glob("*/*/objects/part.o"))


def alive(where: Path) -> list[int]:
    return marked(f"LOG={where / 'log'}")


STEPS = pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("lab", "defconfig"),
        ("lab", "all"),
        ("host", "olddefconfig"),
        ("host", "localmodconfig"),
        ("host", "bindeb-pkg"),
    ],
)


@STEPS
def test_make_ends_and_its_objects_go(
    kind: str, step: str, tmp_path: Path, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    first = begin(kind, step, 600)
    try:
        assert until(lambda: waits(tmp_path, step))
        first.kill()
        first.communicate()
        assert until(lambda: not alive(tmp_path), 20)
    finally:
        for pid in alive(tmp_path):
            os.kill(pid, signal.SIGKILL)
    said = begin(kind, "nothing", 0).communicate()[0].decode().strip()
    assert not parts(tmp_path)
    if kind == "host":
        assert Path(said).read_text() == "whole", "the package that the killed one began is not believed"
        left = {path.name for path in Path(said).parent.iterdir()}
        assert not {name for name in left if name.endswith((".part", ".new", "unfinished"))}


@STEPS
def test_the_next_waits_for_what_does_not_end(
    kind: str, step: str, tmp_path: Path, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    first = begin(kind, step, 3, "ignores SIGTERM")
    assert until(lambda: waits(tmp_path, step))
    first.kill()
    first.communicate()
    begin(kind, "nothing", 0).communicate()
    said = steps(tmp_path)
    assert len(said) > 2
    assert [word for word, _ in said] == ["begin", "end"] * (len(said) // 2), said


def test_what_later_builds_believe_of_hosts_is_never_written_in_part(
    tmp_path: Path, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """A file that a killed build has begun to write is none that the next one finds."""
    package = begin("host", "nothing", 0).communicate()[0].decode().strip()
    kept = {name: (Path(package).parent / name) for name in ("config", "lsmod")}
    for name, path in kept.items():
        os.link(path, tmp_path / f"{name}.first")
    before = {name: path.read_text() for name, path in kept.items()}
    script = tmp_path / "host.py"
    script.write_text(script.read_text().replace("* 9", "* 5").replace('"ext4"', '"ext4", "xfs"'))
    assert begin("host", "nothing", 0).communicate()[0]
    for name, path in kept.items():
        assert path.read_text() != before[name]
        assert (tmp_path / f"{name}.first").read_text() == before[name]
