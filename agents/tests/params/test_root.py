# SPDX-License-Identifier: Apache-2.0
"""Host parameters on the running kernel.  root_host.py is what runs, in namespaces that go with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.root
def test_host() -> None:
    script = str(Path(__file__).with_name("root_host.py"))
    argv = ["unshare", "--net", "--mount", sys.executable, script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all is as before\n")
