# SPDX-License-Identifier: Apache-2.0
"""A build of a kernel that is killed: it ends, and no other one works in its objects before it has."""

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

BUILD = """
import sys
from pathlib import Path
from testctl.lab import kernel
from testctl.lab.source import find

kernel._prepare = lambda work, variant="": []  # the edits want the files of a kernel

def main():
    kernel.build(find("mine", Path(sys.argv[1])), lambda *step: None)

main()
"""
MAKEFILE = "defconfig olddefconfig all:\n\t@$(CURDIR)/step $@ $(O)\nall: step\n.DEFAULT_GOAL = all\n"
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
if sys.argv[1] == os.environ.get("SLOW"):
    (objects / "part.o").write_text("half of it")
    time.sleep(float(os.environ["LONG_S"]))
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
    (tmp_path / "build.py").write_text(BUILD)

    def begin(slow: str, long_s: float, stubborn: str = "") -> subprocess.Popen[bytes]:
        env = os.environ | {
            "TESTCTL_CACHE": str(tmp_path / "cache"), "LOG": str(tmp_path / "log"), "SLOW": slow,
            "LONG_S": str(long_s), "STUBBORN": stubborn,
        }  # fmt: skip
        argv = [sys.executable, str(tmp_path / "build.py"), str(tree)]
        return subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, start_new_session=True)

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
    found = list((where / "cache" / "trees").glob("*/objects/part.o"))
    return bool(found) and steps(where)[-1][0] == "begin"


def alive(where: Path) -> list[int]:
    return marked(f"LOG={where / 'log'}")


@pytest.mark.parametrize("step", ["defconfig", "all"])
def test_make_ends_and_its_objects_go(step: str, tmp_path: Path, begin: Callable[..., subprocess.Popen[bytes]]) -> None:
    first = begin(step, 600)
    try:
        assert until(lambda: waits(tmp_path, step))
        first.kill()
        first.communicate()
        assert until(lambda: not alive(tmp_path), 20)
    finally:
        for pid in alive(tmp_path):
            os.kill(pid, signal.SIGKILL)
    begin("nothing", 0).communicate()
    assert not list((tmp_path / "cache" / "trees").glob("*/objects/part.o"))


@pytest.mark.parametrize("step", ["defconfig", "all"])
def test_the_next_waits_for_what_does_not_end(
    step: str, tmp_path: Path, begin: Callable[..., subprocess.Popen[bytes]]
) -> None:
    first = begin(step, 3, "ignores SIGTERM")
    assert until(lambda: waits(tmp_path, step))
    first.kill()
    first.communicate()
    begin("nothing", 0).communicate()
    said = steps(tmp_path)
    assert len(said) > 2
    assert [word for word, _ in said] == ["begin", "end"] * (len(said) // 2), said
