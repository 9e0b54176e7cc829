# SPDX-License-Identifier: Apache-2.0
"""The tasks of an agent: what they hold open is let go, however they end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from testctl_agent.engine.limits import Limits
from testctl_agent.engine.tasks import Tasks
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.lab_recorder import LabRecorder
from testctl_agent.tasks.task import Announcement, ProgramTask, Task

READY = Announcement("stdout", "ready\n")


def tasks(folder: Path) -> Tasks:
    """Those whose program is option argv."""

    def new(kind: str, name: str, options: Mapping[str, Value], workdir: Path) -> Task:
        argv = str(options["argv"]).split(" ", 2)
        return ProgramTask(name=name, argv=argv, workdir=workdir, read=lambda *_: {}, announcement=READY)

    return Tasks("alpha", new, folder, Limits())


def descriptors() -> list[str]:
    return [name for name in sorted(os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{name}")]


@pytest.mark.parametrize("script", ["echo ready", "echo ready; exec sleep 1000", "echo no", "exit 1"])
def test_a_task_whose_result_nobody_asks_for(tmp_path: Path, script: str) -> None:
    before, some = descriptors(), tasks(tmp_path)
    try:
        task = some.start("it", "generator", "it", {"argv": f"sh -c {script}"})
        task.wait(0.0 if "sleep" in script else 30.0)
    except TestbedError:
        pass
    some.stop_all()
    assert descriptors() == before


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    before, some = descriptors(), tasks(tmp_path)
    with pytest.raises(TestbedError, match="gone: can't be started: No such file or directory"):
        some.start("it", "generator", "it", {"argv": "/gone"})
    some.stop_all()
    assert descriptors() == before


def test_a_recorder_whose_counters_can_not_be_read(tmp_path: Path) -> None:
    before, control = descriptors(), tmp_path / "control"
    control.touch()
    recorder = LabRecorder("capture", control, ("eth0",), tmp_path, "out", lambda _: {})
    recorder.start()
    with pytest.raises(ValueError, match="invalid literal"):
        recorder.stop()
    assert descriptors() == before
