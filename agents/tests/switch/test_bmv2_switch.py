# SPDX-License-Identifier: Apache-2.0
"""BMv2 as the switch on the running kernel.  bmv2_switch.py is what runs, in namespaces that go with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from testctl_agent.p4 import schema, simple_switch

MISSING = simple_switch.missing() or schema.missing()


@pytest.mark.root
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_switch() -> None:
    script = str(Path(__file__).with_name("bmv2_switch.py"))
    argv = ["unshare", "--net", "--mount", sys.executable, script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all is as before\n")
