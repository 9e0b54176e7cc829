# SPDX-License-Identifier: Apache-2.0
"""python -m testctl_agent.engine.launcher SPEC: agents in several network namespaces; all end together.

SPEC is JSON: {"ready": a file made once all agents listen, "agents": [{"config": an AgentConfig, "namespace":
a name, "address": where it listens}]}.  The agents and all they start are in a process namespace of
their own, whose init process dies with this one, and this one dies with its parent process: a kill of any
of them leaves no process.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from testctl_agent.engine.factory import AgentConfig
from testctl_agent.engine.forked import forked_agent
from testctl_agent.system.namespace import CLONE_NEWPID, enter, mount, private_mounts, unshare

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _enter(namespace: str) -> None:
    """The place of an agent; /proc is of the processes that it starts."""
    enter(namespace)
    mount("proc", "/proc")


def _serve(spec: dict[str, Any]) -> int:
    """Start the agents; returns when one of them has ended."""
    private_mounts()
    mount("proc", "/proc")
    waiting = {}
    for one in spec["agents"]:
        config = AgentConfig.from_json(one["config"])
        place = functools.partial(_enter, one["namespace"])
        waiting[config.name] = forked_agent(config, one["address"], place)
    for name, (_, ready) in waiting.items():
        if not os.read(ready, 1):
            sys.stderr.write(f"agent {name} ended before it listened\n")
            return 1
    Path(spec["ready"]).touch()
    agents = {pid: name for name, (pid, _) in waiting.items()}
    while True:  # as the first process it also gets the orphans of the others
        pid, status = os.wait()
        if pid in agents:
            sys.stderr.write(f"agent {agents[pid]} ended ({os.waitstatus_to_exitcode(status)})\n")


def main(arguments: list[str]) -> int:
    _die_with_parent()
    spec = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    unshare(CLONE_NEWPID)
    first = os.fork()
    if first == 0:
        _die_with_parent()
        code = 1
        try:
            code = _serve(spec)
        finally:
            sys.stderr.flush()
            os._exit(code)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
    _, status = os.waitpid(first, 0)  # the first process is gone after all the others
    return os.waitstatus_to_exitcode(status) & 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
