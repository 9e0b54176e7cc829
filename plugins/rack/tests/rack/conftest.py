# SPDX-License-Identifier: Apache-2.0
"""The rack of these tests, restored before and after each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testctl.testbeds.point_runner import drift

from plugins.rack.tests.rack.bed import Bed, bed


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A module's HOSTS says how many hosts it has, if not two."""
    with bed(tmp_path_factory.mktemp("rack"), getattr(request.module, "HOSTS", 2)) as found:
        yield found


@pytest.fixture
def rack(made: Bed) -> Iterator[Bed]:
    """The rack as it should be, with no results; afterwards every machine must be as before."""
    made.restore_rack()
    before = made.attest()
    yield made
    made.restore_rack()
    assert drift(before, made.attest()) == []
