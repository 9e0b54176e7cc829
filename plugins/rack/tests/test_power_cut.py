# SPDX-License-Identifier: Apache-2.0
"""Power is cut at random moments: keys that are reported as made are good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from controller.tests.results.test_power_cut import CUTS, SEED, _possible

pytestmark = [pytest.mark.root, pytest.mark.usefixtures(_possible.__name__)]
SCRIPT = Path(__file__).parent / "power_cuts.py"


def test_power_is_cut(in_namespace: Callable[..., str], tmp_path: Path) -> None:
    printed = in_namespace(SCRIPT, str(tmp_path), CUTS, SEED, timeout_s=300.0 * int(CUTS))
    assert printed.startswith(f"{CUTS} power cuts among "), printed
    print(printed)
