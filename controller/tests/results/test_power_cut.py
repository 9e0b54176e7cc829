# SPDX-License-Identifier: Apache-2.0
"""Power is cut at random moments: what is called complete is whole, and --resume ends as if nothing had been.

TESTCTL_POWER_CUTS says how many cuts (2, and 6 in make test-all), TESTCTL_POWER_SEED which (1).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.tests.results.powercut import disk

pytestmark = pytest.mark.root
SCRIPT = Path(__file__).parent / "power_cuts.py"
CUTS = os.environ.get("TESTCTL_POWER_CUTS", "2")
SEED = os.environ.get("TESTCTL_POWER_SEED", "1")


@pytest.fixture(scope="module", autouse=True)
def _possible(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        with disk(tmp_path_factory.mktemp("power")):
            pass
    except OSError as error:
        pytest.skip(f"no ext4 on a loop device here: {error}")


@pytest.mark.parametrize("cuts", [CUTS, pytest.param("6", marks=pytest.mark.long)])
@pytest.mark.parametrize("what", ["run", "writers"])
def test_power_is_cut(what: str, cuts: str, in_namespace: Callable[..., str], tmp_path: Path) -> None:
    said = in_namespace(SCRIPT, what, str(tmp_path), cuts, SEED, timeout_s=300.0 * int(cuts))
    assert said.startswith(f"{cuts} power cuts among "), said
    print(said)
