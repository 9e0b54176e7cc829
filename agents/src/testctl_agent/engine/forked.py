# SPDX-License-Identifier: Apache-2.0
"""Agents in network namespaces of one machine: a process for each, forked from one that has loaded everything.

The testbed `netns` starts its agents with this, the lab's first process by local.py; starting Python is the slow part.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

from testctl_agent.engine.factory import AgentConfig, assemble
from testctl_agent.engine.server import serve


def forked_agent(config: AgentConfig, address: str, enter: Callable[[], None]) -> tuple[int, int]:
    """Fork an agent that serves at an address once `enter` has put it in its place.

    Returns its process and the end of a pipe that gives a byte when it listens, and nothing when it
    ended before; its words are on standard error.
    """
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ready)
            enter()
            server, _service = serve(assemble(config), address)
            os.write(tell, b"1")
            os.close(tell)
            server.wait_for_termination()
        except BaseException:  # noqa: BLE001 -- a forked child must not return into its parent's code
            traceback.print_exc()
        os._exit(1)
    os.close(tell)
    return pid, ready
