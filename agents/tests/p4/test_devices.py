# SPDX-License-Identifier: Apache-2.0
"""A program between real devices.  root_devices.py is what runs, in a namespace that goes with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.root
def test_devices() -> None:
    script = str(Path(__file__).with_name("root_devices.py"))
    argv = ["unshare", "--net", "--mount", sys.executable, script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "tags are right on the wire\n"
