# SPDX-License-Identifier: Apache-2.0
"""The testbed's program on each target there is, and a switch of three ports that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agents.tests.switch.program import ProgramSwitch, open_target


@pytest.fixture(scope="session", params=[pytest.param("ebpf", marks=pytest.mark.root), "bmv2"])
def program_target(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Anything with `driver` and `inject`; skipped, with the reason, where it can't be had."""
    with open_target(request.param) as target:
        yield target


@pytest.fixture(scope="session")
def running_switch(program_target: Any) -> ProgramSwitch:
    return ProgramSwitch(program_target)


@pytest.fixture
def switch(running_switch: ProgramSwitch) -> ProgramSwitch:
    """The switch as nobody has asked anything of it."""
    running_switch.reset()
    return running_switch
