# SPDX-License-Identifier: Apache-2.0
"""netem ports on the lab's kernels.  lab_port.py is what runs inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.lab
def test_port(in_lab: Callable[..., str]) -> None:
    said = in_lab(Path(__file__).with_name("lab_port.py").read_text())
    assert said.endswith("all is as before\n")
