# SPDX-License-Identifier: Apache-2.0
"""Any program of the machine, in the lab and in netns: the command line comes with the flow (params/flow/command.py).

Only an agent whose configuration allows commands runs it: the agents of the lab and of netns do for a plan of the
user, a daemon on a rack never does (engine/factory.py).  The client's ports are the flow's, because the testbed sets
the range of local ports of its host; the server has to listen at {server_port}.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from testctl_agent.generators import tgen
from testctl_agent.generators._options import need
from testctl_agent.generators._sockets import bound, listens, wait_until
from testctl_agent.generators.tgen import Side
from testctl_agent.params.flow import command
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.system.subprocesses import Process
from testctl_agent.tasks.task import ProgramTask, Result

NAME = command.GENERATOR
STDOUT, STDERR = "stdout.txt", "stderr.txt"
SETTLE_S = 1.0
"""How long a server may go on by itself when its client has ended."""
_SHOWN = 2000
"""Characters of an output that a result has; all of it is in the task's files."""
_STOPPED = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
"""Exit codes of a server that was stopped."""


def unavailable() -> str:
    """Why this generator is not available; "" when it is."""
    why = tgen.unavailable()
    return f"a command is started on time by tgen, and {why}" if why else ""


def environment(workdir: Path) -> list[str]:
    """For env(1): what a program has besides PATH; its own files are in the task's directory."""
    return ["-i", *(f"{name}={value}" for name, value in {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(workdir), "TMPDIR": str(workdir),
        **command.ENVIRONMENT,
    }.items())]  # fmt: skip


def argv(side: Side, options: Mapping[str, Value], workdir: Path) -> list[str]:
    """The command of one end; tgen starts the client's on time."""
    arguments = ["env", *environment(workdir), *command.argv(str(need(options, side, NAME)), options)]
    if side == "server":
        return arguments
    return [tgen.binary() or tgen.BINARY, "at", f"start_ns={int(options.get('start_ns', 0))}", *arguments]


def result(side: Side, code: int, workdir: Path) -> Result:
    """How one end ended, and the end of what it printed.  Raises TestbedError when it failed."""
    printed = {name: _tail(workdir / name) for name in (STDOUT, STDERR)}
    if code not in (_STOPPED if side == "server" else {0}):
        reason = printed[STDERR] or printed[STDOUT] or "no output"
        raise TestbedError(f"command, {side}: exit {code}: {reason}")
    return {
        "generator": NAME, "side": side, "error": None, "connections": [], "exit": code,
        "stdout": printed[STDOUT], "stderr": printed[STDERR],
    }  # fmt: skip


def _tail(path: Path) -> str:
    """The end of a text file; "" when it is not there."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - 4 * _SHOWN, 0))
        return file.read().decode(errors="replace").strip()[-_SHOWN:]


def task(options: Mapping[str, Value], workdir: Path) -> ProgramTask:
    """One end of a flow, by options["side"]."""
    side: Side = "server" if need(options, "side", NAME) == "server" else "client"
    if why := unavailable():
        raise TestbedError(why)
    port = int(need(options, "server_port", NAME))

    def ready(process: Process, timeout_s: float) -> bool:
        return wait_until(lambda: listens(port) or bound(port), process, timeout_s)

    return ProgramTask(
        name=f"command, {side}", argv=argv(side, options, workdir), workdir=workdir,
        read=lambda code, _: result(side, code, workdir), outputs=(STDOUT, STDERR),
        ready=ready if side == "server" else None,
        settle_s=SETTLE_S if side == "server" else 0.0,
    )  # fmt: skip
