# SPDX-License-Identifier: Apache-2.0
"""python -m testctl_agent.engine.launcher SPEC SOCKET: agents in several network namespaces; all end together.

SPEC is a file of JSON: [{"config": an AgentConfig, "namespace": a name}].  The pipe of each (local.py) goes through
SOCKET, a descriptor: a byte with two files, for requests and for replies.  The agents and all they start are in a
process namespace of their own, whose init process dies with this one, and this one dies with its parent process: a
kill of any of them leaves no process.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from testctl_agent.engine.factory import AgentConfig
from testctl_agent.engine.local import forked_local_agent
from testctl_agent.system.namespace import CLONE_NEWPID, enter, mount, private_mounts, unshare

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _enter(namespace: str) -> None:
    """Move to an agent's network namespace; its /proc shows the processes that it starts."""
    enter(namespace)
    mount("proc", "/proc")


def _serve(spec: list[dict[str, Any]], caller: socket.socket) -> None:
    """Start the agents; returns when all of them have ended."""
    private_mounts()
    mount("proc", "/proc")
    agents = {}
    for agent in spec:
        config = AgentConfig.from_json(agent["config"])
        place = functools.partial(_enter, agent["namespace"])
        pid, pipe = forked_local_agent(config, place)
        agents[pid] = config.name
        socket.send_fds(caller, [b"."], pipe.files())
        pipe.close()
    while agents:  # as the first process it also gets the orphans of the others
        pid, status = os.wait()
        if pid in agents:
            sys.stderr.write(f"agent {agents.pop(pid)} ended ({os.waitstatus_to_exitcode(status)})\n")


def main(arguments: list[str]) -> int:
    _die_with_parent()
    spec = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    unshare(CLONE_NEWPID)
    first = os.fork()
    if first == 0:
        _die_with_parent()
        code = 1
        try:
            _serve(spec, socket.socket(fileno=int(arguments[1])))
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
    _, status = os.waitpid(first, 0)  # the first process is gone after all the others
    return os.waitstatus_to_exitcode(status) & 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
