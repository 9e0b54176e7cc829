# SPDX-License-Identifier: Apache-2.0
"""Which of several processes that wake together runs first does not depend on what they did before."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.lab
def test_once_told_to_forget_processes_run_in_the_order_of_their_waking(in_lab: Callable[..., str]) -> None:
    script = Path(__file__).with_name("lab_wake_order.py").read_text(encoding="utf-8")
    remembered, forgotten = (json.loads(line) for line in in_lab(script).splitlines())
    assert len(set(remembered)) > 1, f"the past makes no difference, so this test shows nothing: {remembered}"
    assert set(forgotten) == {"0123"}, forgotten
