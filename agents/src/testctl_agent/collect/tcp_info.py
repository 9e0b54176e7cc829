# SPDX-License-Identifier: Apache-2.0
"""Samples of struct tcp_info of every connection, by `tgen sample` (its file format is there)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from testctl_agent.generators import tgen
from testctl_agent.params.host.tcp_info import SPEC
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.task import Announcement, ProgramTask, Result

NAME = "tcp_info"
FILE = "tcp_info.bin"


def files(options: Mapping[str, Value]) -> list[str]:
    return [FILE]


def argv(options: Mapping[str, Value], workdir: Path) -> list[str]:
    """The command.  options: interval_ns, ports ("5001,5002"; none: all), start_ns, end_ns, family."""
    words = [tgen.binary() or tgen.BINARY, "sample", f"out={workdir / FILE}"]
    words.append(f"interval_ns={int(options.get('interval_ns', SPEC.default or 0))}")
    words += [f"{name}={options[name]}" for name in ("ports", "start_ns", "end_ns", "family") if options.get(name)]
    return words


def task(options: Mapping[str, Value], workdir: Path) -> ProgramTask:
    if why := tgen.unavailable():
        raise TestbedError(f"tcp_info: {why}")

    def read(code: int, printed: str) -> Result:
        if code != 0:
            raise TestbedError(f"tcp_info: exit {code}: {printed or 'no output'}")
        return {"bytes": (workdir / FILE).stat().st_size}

    return ProgramTask(
        name=NAME, argv=argv(options, workdir), workdir=workdir, read=read, outputs=files(options),
        announcement=Announcement("stdout", "ready\n"),
    )  # fmt: skip
