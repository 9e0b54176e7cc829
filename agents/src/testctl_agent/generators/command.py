# SPDX-License-Identifier: Apache-2.0
"""Any program of the machine, in the lab and in netns: the command line comes with the flow (params/flow/command.py).

Only an agent whose configuration allows commands runs it: those of the lab and of netns for a plan of the user do,
a daemon on a rack never does (engine/factory.py).  The client's ports are the flow's, because the testbed sets the
range of local ports of its host; the server has to listen at {server_port}.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from testctl_agent.generators import iperf3, tgen
from testctl_agent.generators._options import need
from testctl_agent.generators.tgen import Side
from testctl_agent.params.flow import command
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.system.subprocesses import Process
from testctl_agent.tasks.task import ProgramTask, Result, wait_for

NAME = command.GENERATOR
STDOUT, STDERR = "stdout.txt", "stderr.txt"
SETTLE_S = 1.0
"""How long a server may go on by itself when its client has ended."""
_POLL_S = 0.005
_SHOWN = 2000
"""Characters of an output that a result has; all of it is in the task's files."""
_STOPPED = {0, -signal.SIGTERM, 128 + signal.SIGTERM}
"""Exit codes of a server that was asked to end."""


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
    words = ["env", *environment(workdir), *command.argv(str(need(options, side, NAME)), options)]
    if side == "server":
        return words
    return [tgen.binary() or tgen.BINARY, "at", f"start_ns={int(options.get('start_ns', 0))}", *words]


def bound(port: int, proc: Path = Path("/proc")) -> bool:
    """Whether some UDP socket of this namespace is bound to that port (proc(5), net/udp)."""
    for name in ("udp", "udp6"):
        path = proc / "net" / name
        for line in path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []:
            if int(line.split()[1].rpartition(":")[2], 16) == port:
                return True
    return False


def _until_there(process: Process, timeout_s: float, port: int) -> bool:
    """Wait until something listens at the port, by TCP or UDP; False when the program ended before."""
    for _ in range(int(timeout_s / _POLL_S)):
        if iperf3.listens(port) or bound(port):
            return True
        if wait_for(process, _POLL_S):
            return False
    return False


def result(side: Side, code: int, workdir: Path) -> Result:
    """How one end ended, and the end of what it printed.  Raises TestbedError when it failed."""
    printed = {name: _tail(workdir / name) for name in (STDOUT, STDERR)}
    if code not in (_STOPPED if side == "server" else {0}):
        words = printed[STDERR] or printed[STDOUT] or "no output"
        raise TestbedError(f"command, {side}: exit {code}: {words}")
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
    ready = (lambda process, timeout_s: _until_there(process, timeout_s, port)) if side == "server" else None
    return ProgramTask(
        name=f"command, {side}", argv=argv(side, options, workdir), workdir=workdir,
        read=lambda code, _: result(side, code, workdir), outputs=(STDOUT, STDERR), ready=ready,
        settle_s=SETTLE_S if side == "server" else 0.0,
    )  # fmt: skip
