# SPDX-License-Identifier: Apache-2.0
"""The traffic program tgen, which is built of agents/tgen when the agents are installed (setup.py).

A lab and a deployed agent get its path as $TESTCTL_TGEN.
"""

from __future__ import annotations

import os

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.own_files import agents_file
from testctl_agent.system.subprocesses import which

GIVEN = "TESTCTL_TGEN"
NAME = "tgen"
MISSING = "tgen is not built: install testctl-agent again (in a checkout: make -C agents/tgen)"


def found() -> str:
    """$TESTCTL_TGEN, the package's or checkout's, or the one in PATH; "" when there is none."""
    return os.environ.get(GIVEN) or str(agents_file(f"agents/tgen/{NAME}") or which(NAME))


def ready() -> str:
    """The program's path.  Raises TestbedError when there is none."""
    if not (present := found()):
        raise TestbedError(MISSING)
    return present
