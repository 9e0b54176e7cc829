# SPDX-License-Identifier: Apache-2.0
"""The rack of machines of these tests, made once; where QEMU is not installed they are skipped, with the reason."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_rack import image, network
from machine_rack import rack as tool

from tests.machines.machines import MANAGEMENT, Machines

OWNER = "owner"


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two hosts and a switch that answer SSH, with nothing deployed; afterwards nothing of it is left."""
    if why := image.lacking():
        pytest.skip(f"no machines: {why}")
    if (state := network.belongs_to()) is not None and (state.parent / OWNER).exists():
        tool.down(state)  # of a test that was killed: there is one such test at a time
    where = tmp_path_factory.mktemp("m")
    (where / OWNER).write_text(sys.executable, encoding="utf-8")
    found = Machines(where / "state", where)
    done = found.tool("up", "--machines", "--management", MANAGEMENT)
    assert done.code == 0, done.said
    print(done.said)
    try:
        yield found
    finally:
        for process in found.runs:
            process.kill()
            process.communicate(timeout=60)
        down = found.tool("down")
        assert down.code == 0, down.said
    assert not Path(found.state).exists()
    assert network.devices() == []
    assert tool.processes(found.state) == []
