# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a mount namespace of its own: a journal on a file system of two pages."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from pathlib import Path

import pytest
from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.engine.journal import Journal
from testctl_agent.spec.errors import ApplyError

from agents.tests.engine.test_apply import World, engine, start


def fill(mine: Engine) -> None:
    """Apply until the disk is full."""
    for value in itertools.cycle((2, 3)):
        mine.apply([Setting("x", "a", value)])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", folder], check=True)
        journal = Path(folder) / "j"
        world = World(start())
        mine = engine(world, journal)
        with pytest.raises(ApplyError) as refused:
            fill(mine)
        assert f"host x, a: not set: {journal}: the journal can't be written: No space left" in str(refused.value)
        assert world.seen.count("applied x.a") > 50
        # All of it is restored, as after every Apply that fails; restoring needs no space.
        assert world.state == start()
        assert not journal.exists()
        (Path(folder) / "filler").write_bytes(bytes(8192))
        with pytest.raises(ApplyError, match="No space left on device"):
            mine.apply([Setting("x", "b", 2)])
        assert world.state == start()
        assert Journal(journal).read() == []
        subprocess.run(["umount", folder], check=True)
    print("nothing was changed")


if __name__ == "__main__":
    main()
