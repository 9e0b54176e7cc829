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
from testctl_agent.tasks.task import ProgramTask, Result, Task, written
from testctl_agent.tasks.together import Together

NAME = "tcp_info"
FILE, SECOND_FILE = "tcp_info.bin", "tcp_info6.bin"
FAMILIES = ("inet", "inet6")
LAB_FILE = Path("/proc/testctl_tcp_info")
"""In a lab: the kernel's own sampler (lab/kernel/lab_tcp_info.c)."""


def families(options: Mapping[str, Value]) -> list[str]:
    """Whose sockets are sampled, of option family: "inet" (without it), "inet6" or "inet,inet6"."""
    text = str(options.get("family") or FAMILIES[0])
    named = text.split(",")
    if named not in (list(FAMILIES), *([family] for family in FAMILIES)):
        raise TestbedError(f"{NAME}: family: want inet, inet6 or inet,inet6; got {text[:40]!r}")
    return named


def files(options: Mapping[str, Value]) -> list[str]:
    return [FILE, SECOND_FILE][: len(families(options))]


def argv(options: Mapping[str, Value], workdir: Path, file: str = FILE) -> list[str]:
    """The command.  options: interval_ns, ports ("5001,5002"; none: all), start_ns, end_ns, family (one)."""
    arguments = [tgen.binary() or tgen.BINARY, "sample", f"out={workdir / file}"]
    arguments.append(f"interval_ns={int(options.get('interval_ns', SPEC.default or 0))}")
    arguments += [f"{name}={options[name]}" for name in ("ports", "start_ns", "end_ns", "family") if options.get(name)]
    return arguments


def lab_arguments(options: Mapping[str, Value]) -> list[str]:
    """The arguments of the lab's kernel; the same options."""
    numbers = {"start_ns": 0, "end_ns": 0, "interval_ns": SPEC.default or 0}
    arguments = [str(int(options.get(name) or default)) for name, default in numbers.items()]
    return [*arguments, str(options.get("family") or "inet"), str(options.get("ports") or "-")]


def _lab_result(counts: Mapping[str, int]) -> Result:
    if counts["dropped"]:
        raise TestbedError(f"{NAME}: {counts['dropped']} of {counts['records'] + counts['dropped']} samples were lost")
    return {"bytes": counts["bytes"]}


def task(options: Mapping[str, Value], workdir: Path) -> Task:
    """A sampler for each family, with a file of its own."""
    tasks = [
        _sampler({**options, "family": family}, workdir, file)
        for family, file in zip(families(options), files(options), strict=True)
    ]
    return tasks[0] if len(tasks) == 1 else Together(tasks, lambda ends: {"bytes": sum(end["bytes"] for end in ends)})


def _sampler(options: Mapping[str, Value], workdir: Path, file: str) -> Task:
    if LAB_FILE.exists():
        return LabRecorder(NAME, LAB_FILE, lab_arguments(options), workdir, file, _lab_result)
    if why := tgen.unavailable():
        raise TestbedError(f"tcp_info: {why}")

    return ProgramTask(
        name=NAME, argv=argv(options, workdir, file), workdir=workdir, read=written(NAME, workdir / file),
        outputs=(file,),
        announcement=tgen.READY, stderr=f"{Path(file).stem}-stderr.txt",
    )  # fmt: skip
