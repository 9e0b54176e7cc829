# SPDX-License-Identifier: Apache-2.0
"""A packetdrill script in a namespace of the running kernel: what it can write to."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab.packetdrill import Case
from testctl.system.temporary import temporary
from testctl.testbeds import packetdrill


@pytest.mark.root
def test_the_machine_s_files_are_read_only(tmp_path: Path) -> None:
    """Its program is any here: one that does what the shell lines of a script could."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\ntouch /tmp/mine || exit 3\ntouch "$1"\n')
    program.chmod(0o755)
    owned = Path("/var/testctl-owned")
    try:
        for written in (owned, tmp_path / "mine"):
            end = packetdrill._in_namespace(program, Case(tmp_path / "script.pkt", "ipv4", (str(written),)), 60)
            assert "Read-only file system" in end.text
            assert not written.exists()
    finally:
        owned.unlink(missing_ok=True)


@pytest.mark.root
def test_a_script_s_directory_stays_below_tmp() -> None:
    """Of /tmp nothing else is there."""
    with temporary("testctl-test-") as home, temporary("testctl-test-") as other:
        (home / "scripts").mkdir()
        program, script = home / "program", home / "scripts" / "script.pkt"
        program.write_text('#!/bin/sh\npwd; cat ../helper "$1"; ls /tmp; exit 1\n')
        program.chmod(0o755)
        (home / "helper").write_text("here\n")
        script.write_text("0 nothing\n")
        end = packetdrill._in_namespace(program, Case(script, "ipv4", ()), 60)
        assert end.text.splitlines() == [str(script.parent), "here", "0 nothing", home.name]
        assert other.exists()
