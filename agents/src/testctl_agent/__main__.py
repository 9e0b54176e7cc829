# SPDX-License-Identifier: Apache-2.0
"""`python -m testctl_agent` is the command testctl-agent."""

from __future__ import annotations

import sys

from testctl_agent.main import main

if __name__ == "__main__":
    sys.exit(main())
