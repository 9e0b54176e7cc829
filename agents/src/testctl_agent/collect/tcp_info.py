# SPDX-License-Identifier: Apache-2.0
"""Samples of struct tcp_info of every connection: by the lab's kernel, elsewhere by `tgen sample` (the file format is
there)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from testctl_agent.generators import tgen
from testctl_agent.params.host.tcp_info import SPEC
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.lab_recorder import LabRecorder
from testctl_agent.tasks.task import Announcement, ProgramTask, Result, Task
from testctl_agent.tasks.together import Together

NAME = "tcp_info"
FILE, SECOND_FILE = "tcp_info.bin", "tcp_info6.bin"
FAMILIES = ("inet", "inet6")
LAB_FILE = Path("/proc/testctl_tcp_info")
"""In a lab: the kernel's own sampler (lab/kernel/lab_tcp_info.c)."""


def families(options: Mapping[str, Value]) -> list[str]:
    """Whose sockets are sampled, of option family: "inet" (without it), "inet6" or "inet,inet6"."""
    words = str(options.get("family") or FAMILIES[0])
    found = words.split(",")
    if found not in (list(FAMILIES), *([one] for one in FAMILIES)):
        raise TestbedError(f"{NAME}: family: want inet, inet6 or inet,inet6; got {words[:40]!r}")
    return found


def files(options: Mapping[str, Value]) -> list[str]:
    return [FILE, SECOND_FILE][: len(families(options))]


def argv(options: Mapping[str, Value], workdir: Path, file: str = FILE) -> list[str]:
    """The command.  options: interval_ns, ports ("5001,5002"; none: all), start_ns, end_ns, family (one)."""
    words = [tgen.binary() or tgen.BINARY, "sample", f"out={workdir / file}"]
    words.append(f"interval_ns={int(options.get('interval_ns', SPEC.default or 0))}")
    words += [f"{name}={options[name]}" for name in ("ports", "start_ns", "end_ns", "family") if options.get(name)]
    return words


def lab_words(options: Mapping[str, Value]) -> list[str]:
    """The words for the lab's kernel; the same options."""
    numbers = {"start_ns": 0, "end_ns": 0, "interval_ns": SPEC.default or 0}
    words = [str(int(options.get(name) or default)) for name, default in numbers.items()]
    return [*words, str(options.get("family") or "inet"), str(options.get("ports") or "-")]


def _written(found: Mapping[str, int]) -> Result:
    if found["dropped"]:
        raise TestbedError(f"{NAME}: {found['dropped']} of {found['records'] + found['dropped']} samples were lost")
    return {"bytes": found["bytes"]}


def task(options: Mapping[str, Value], workdir: Path) -> Task:
    """A sampler for each family, with a file of its own."""
    tasks = [
        _of_one({**options, "family": family}, workdir, file)
        for family, file in zip(families(options), files(options), strict=True)
    ]
    return tasks[0] if len(tasks) == 1 else Together(tasks, lambda found: {"bytes": sum(one["bytes"] for one in found)})


def _of_one(options: Mapping[str, Value], workdir: Path, file: str) -> Task:
    if LAB_FILE.exists():
        return LabRecorder(NAME, LAB_FILE, lab_words(options), workdir, file, _written)
    if why := tgen.unavailable():
        raise TestbedError(f"tcp_info: {why}")

    def read(code: int, printed: str) -> Result:
        if code != 0:
            raise TestbedError(f"tcp_info: exit {code}: {printed or 'no output'}")
        return {"bytes": (workdir / file).stat().st_size}

    return ProgramTask(
        name=NAME, argv=argv(options, workdir, file), workdir=workdir, read=read, outputs=(file,),
        announcement=Announcement("stdout", "ready\n"), stderr=f"{Path(file).stem}-stderr.txt",
    )  # fmt: skip
