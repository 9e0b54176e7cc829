# SPDX-License-Identifier: Apache-2.0
"""TCP's events of the running kernel.  root_trace.py is what runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testctl_agent.tcp_trace.bpf import unavailable

pytestmark = [pytest.mark.alone, pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "-")]


def test_the_trace_ends_where_tcp_info_does(tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("root_trace.py"))
    argv = ["unshare", "--net", "--mount", sys.executable, script, str(tmp_path)]
    paths = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all is as the kernel says\n")
