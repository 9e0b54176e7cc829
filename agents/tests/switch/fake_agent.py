# SPDX-License-Identifier: Apache-2.0
"""`testctl-agent`, whose switch may have the back end "fake" too: run by its path, with the agent's arguments."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from testctl_agent.main import main

from agents.tests.switch import fake

assert fake.FakeBackend  # importing it has registered it

if __name__ == "__main__":
    sys.exit(main())
