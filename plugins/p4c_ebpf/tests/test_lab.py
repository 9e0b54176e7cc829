# SPDX-License-Identifier: Apache-2.0
"""Programs load and run on the lab's kernels, which have no BTF.  lab_program.py runs inside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.p4c_ebpf.tests.harness import compiled
from plugins.p4c_ebpf.tests.program_files import BUILD, PROGRAMS

TESTBED = BUILD / "testbed.json"


@pytest.mark.lab
def test_programs_load(in_lab: Callable[..., str]) -> None:
    programs = sorted(PROGRAMS.glob("*.json")) + [TESTBED] * TESTBED.exists()
    objects = [str(compiled(one).object) for one in programs]
    said = in_lab(
        Path(__file__).with_name("lab_program.py").read_text(), timeout_s=300.0, PROGRAMS=os.pathsep.join(objects)
    )
    print(said)
    for one in programs:
        assert f"{one.name}: " in said
    assert "l2.json: forwards" in said
