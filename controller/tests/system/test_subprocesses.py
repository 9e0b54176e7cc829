# SPDX-License-Identifier: Apache-2.0
"""Programs that are waited for."""

from __future__ import annotations

import subprocess

import pytest
from testctl.system.subprocesses import run, wait


@pytest.mark.parametrize(("timeout_s", "ended"), [(0, False), (1e7, True), (float("inf"), True)])
def test_the_end_of_a_program_is_seen_however_long_it_may_take(timeout_s: float, ended: bool) -> None:
    with subprocess.Popen(["sleep", "0.2"]) as process:
        assert wait(process, timeout_s) is ended
    assert wait(process, 0)


def test_what_a_program_prints_need_not_be_utf_8() -> None:
    """git prints lines of sources as they are."""
    assert run(["printf", r"caf\351 \303\251"]) == "caf\ufffd é"
