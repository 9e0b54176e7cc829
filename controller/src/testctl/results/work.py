# SPDX-License-Identifier: Apache-2.0
"""The directory of raw files of a run or test in progress, which is removed with its process."""

from __future__ import annotations

import shutil
import time
from itertools import count
from pathlib import Path

from testctl_agent.system import durable

from testctl.results import layout
from testctl.results.atomic import naming_path
from testctl.results.writer import RunWriter, in_progress
from testctl.system import temporary

WORK = ".work"
"""Directory in a run in progress: files of labs that have not been read yet."""
STOPPED = ".stopped-"
"""Part of the name of a stopped run to the user's directory that was started again."""
CLEAR_TRIES = 50


def clear_work(directory: Path) -> None:
    """Remove a directory into which labs that are being killed may still write."""
    for _ in range(CLEAR_TRIES):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            break
        time.sleep(0.1)
    temporary.release(directory)


def set_aside(final: Path) -> None:
    """Rename the remains of a stopped run to `final`, if any, so that it can start again; its points are kept.

    A run that another process continues is left alone.  Raises TestbedError.
    """
    stopped = in_progress(final)
    if stopped.is_symlink() or not (stopped / layout.PLAN).is_file():
        return
    temporary.remove_abandoned([stopped / WORK])
    if (stopped / WORK).exists():
        return
    places = (in_progress(final.with_name(f"{final.name}{STOPPED}{number}")) for number in count(1))
    with naming_path(stopped, "nothing was run"):
        durable.rename(stopped, next(place for place in places if not place.exists()))


def begin_work(run: Path) -> None:
    """Make the run's directory for raw files, removed with this process, and remove those of killed processes.

    Also remove their runs without a finished point, and their A/A tests.
    """
    for kind in (layout.IN_PROGRESS, layout.CHECK):
        for work in temporary.remove_abandoned(run.parent.glob(f"*{kind}/{WORK}")):
            RunWriter(work.parent, work.parent, None).discard()
    with naming_path(run, "nothing was run"):
        (run / WORK).mkdir()
        temporary.hold(run / WORK)
