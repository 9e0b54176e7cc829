# SPDX-License-Identifier: Apache-2.0
"""A packetdrill script in a namespace of the running kernel: what it can write to."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab.packetdrill import Case
from testctl.testbeds import packetdrill


@pytest.mark.root(beside=True)
def test_the_machine_s_files_are_read_only(tmp_path: Path) -> None:
    """Its program is any here: one that does what the shell lines of a script could."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\ntouch /tmp/mine || exit 3\ntouch "$1"\n')
    program.chmod(0o755)
    owned = Path("/var/testctl-owned")
    case = Case(tmp_path / "script.pkt", "ipv4", (str(owned),))
    try:
        end = packetdrill._here(program, case, 60)
        assert "Read-only file system" in end.words
        assert not owned.exists()
    finally:
        owned.unlink(missing_ok=True)
