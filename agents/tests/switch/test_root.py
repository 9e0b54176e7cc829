# SPDX-License-Identifier: Apache-2.0
"""The eBPF switch on the running kernel.  root_ebpf.py is what runs, in a namespace that goes with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.root
def test_ebpf() -> None:
    script = str(Path(__file__).with_name("root_ebpf.py"))
    argv = ["unshare", "--net", "--mount", sys.executable, script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all is as before\n")
