# SPDX-License-Identifier: Apache-2.0
"""A run in which nothing was measured is no success, and says what to leave out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from testctl.cli.exit_code import SKIPPED


@pytest.mark.lab
def test_all_points_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "skip.yaml").write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\n"
        "tuples:\n  - [hosts, coalesce_tx_frames, 8]\n  - [bulk, duration, 100ms]\n"
    )
    argv = [sys.executable, "-m", "testctl.cli.main", "run", "skip.yaml", "--set", "hosts.tcp_sack=1"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == SKIPPED == 4, done.stdout + done.stderr
    assert done.stderr.endswith(
        "warning: nothing was measured, every point was skipped: sender, coalesce_tx_frames and receiver, "
        "coalesce_tx_frames: device eth0 (veth) has no send coalescing by packets\n"
        "without what can't be had here:\n"
        "  testctl run skip.yaml --set hosts.tcp_sack=1 --without hosts.coalesce_tx_frames\n"
    )
