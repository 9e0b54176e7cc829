# SPDX-License-Identifier: Apache-2.0
"""Values as plans write them, as numbers in base units."""

from __future__ import annotations

import pytest
from testctl.core.quantities import numeric


@pytest.mark.parametrize(
    ("texts", "values", "suffix"),
    [(["1ms", "200us"], [0.001, 0.0002], "_s"), (["10mbit", "1gbit"], [1e7, 1e9], "_bps"),
     (["30kB", "1MB"], [30_000, 1_000_000], "_bytes"), (["1500", "9000"], [1500, 9000], "")],
)  # fmt: skip
def test_quantities_of_one_kind_are_numbers(texts: list[str], values: list[float], suffix: str) -> None:
    numbers = numeric(texts)
    assert numbers is not None
    assert (list(numbers.values), numbers.suffix) == (values, suffix)


@pytest.mark.parametrize("texts", [[], ["6.1", "6.12"], ["cubic"], ["1ms", "30kB"], ["off", "10kB"]])
def test_others_are_none(texts: list[str]) -> None:
    assert numeric(texts) is None
