# SPDX-License-Identifier: Apache-2.0
"""Programs that are waited for."""

from __future__ import annotations

import subprocess

import pytest
from testctl.system.subprocesses import wait


@pytest.mark.parametrize(("timeout_s", "ended"), [(0, False), (1e7, True), (float("inf"), True)])
def test_the_end_of_a_program_is_seen_however_long_it_may_take(timeout_s: float, ended: bool) -> None:
    with subprocess.Popen(["sleep", "0.2"]) as process:
        assert wait(process, timeout_s) is ended
    assert wait(process, 0)
