# SPDX-License-Identifier: Apache-2.0
"""The raw files of a run or a check in progress: where they lie, and that they go with the process that made them."""

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
"""In a run in progress: what the labs write, until it has been read."""
STOPPED = ".stopped-"
"""In the name of a run to a directory of the user's choice that was stopped, and begun again."""
CLEAR_TRIES = 50


def clear_work(directory: Path) -> None:
    """Remove a directory, though labs that are just being killed may still write into it."""
    for _ in range(CLEAR_TRIES):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            break
        time.sleep(0.1)
    temporary.release(directory)


def set_aside(final: Path) -> None:
    """Rename what a stopped run to `final` left, if anything, so that it can be begun again; its points are kept.

    A run that another process goes on with stays as it is.  Raises TestbedError.
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
    """Make the run's directory for raw files, which goes with this process, and remove those that killed ones left.

    A run of theirs that has no finished point goes too, and an A/A check.
    """
    for kind in (layout.IN_PROGRESS, layout.CHECK):
        for work in temporary.remove_abandoned(run.parent.glob(f"*{kind}/{WORK}")):
            RunWriter(work.parent, work.parent, None).discard()
    with naming_path(run, "nothing was run"):
        (run / WORK).mkdir()
        temporary.hold(run / WORK)
