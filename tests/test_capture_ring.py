# SPDX-License-Identifier: Apache-2.0
"""When a capture was started decides nothing of when it runs: in the lab its ring is emptied at set times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.lab
def test_a_capture_hands_over_at_the_same_times_whenever_it_was_started(in_lab: Callable[..., str]) -> None:
    script = Path(__file__).with_name("lab_capture_ring.py").read_text(encoding="utf-8")
    early, late = json.loads(in_lab(script))
    assert 0 < early <= 1001
    assert abs(early - late) <= 1, (early, late)
