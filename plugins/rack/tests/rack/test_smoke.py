# SPDX-License-Identifier: Apache-2.0
"""A plan on a rack, from the command line to the results: what `make test` runs of the rack."""

from __future__ import annotations

import pytest

from plugins.rack.tests.rack.bed import Bed

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


def test_nothing_happens(rack: Bed) -> None:
    """The plan passes on the rack; the four segments it names are lost, and no others."""
    for point in rack.whole("--without", "hosts.capture")["points"]:
        assert point["metrics"]["bulk"]["packets_lost"] == 4
