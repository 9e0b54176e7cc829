# SPDX-License-Identifier: Apache-2.0
"""A run in which nothing was measured is no success, and says what to leave out."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.cli.exit_code import SKIPPED

from tests.cli_commands import call


@pytest.mark.lab
def test_all_points_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "skip.yaml").write_text(
        "topology: pair\nflows: {bulk: sender -> receiver}\n"
        "tuples:\n  - [hosts, coalesce_tx_frames, 8]\n  - [bulk, duration, 100ms]\n"
    )
    assert SKIPPED == 4
    done = call(tmp_path, "run", "skip.yaml", "--set", "hosts.tcp_sack=1", code=4)
    assert done.stderr.endswith(
        "warning: nothing was measured, every point was skipped: sender, coalesce_tx_frames and receiver, "
        "coalesce_tx_frames: device eth0 (veth) has no send coalescing by packets\n"
        "without what can't be had here:\n"
        "  testctl run skip.yaml --set hosts.tcp_sack=1 --without hosts.coalesce_tx_frames\n"
    )
