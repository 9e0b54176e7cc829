# SPDX-License-Identifier: Apache-2.0
"""Programs load and run on the lab's kernels, which have neither BTF nor a JIT.  lab_program.py runs inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.p4.compile import compiled

HERE = Path(__file__).parent
TESTBED = HERE.parents[2] / "p4" / "build" / "testbed.json"


@pytest.mark.lab
def test_programs_load(in_lab: Callable[..., str]) -> None:
    programs = sorted((HERE / "programs").glob("*.json")) + [TESTBED] * TESTBED.exists()
    folders = [str(compiled(one, harness=True).object.parent) for one in programs]
    said = in_lab(
        f"PROGRAMS = {folders!r}\n"
        + (HERE / "lab_program.py").read_text().split("from __future__ import annotations\n", 1)[1]
    )
    print(said)
    for one in programs:
        assert f"{one.name}: " in said
    assert "l2.json: forwards" in said
