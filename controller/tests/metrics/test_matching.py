# SPDX-License-Identifier: Apache-2.0
"""Departures and arrivals are matched over loss, repetition and merging."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.metrics.core.matching import match

Packet = tuple[int, int, int, int]
"""start, end, time, timestamp"""


def matched(sent: list[Packet], arrived: list[Packet]) -> list[int]:
    columns = [tuple(np.array(side, np.int64).reshape(-1, 4).T.copy()) for side in (sent, arrived)]
    found: list[int] = match(columns[0], columns[1]).tolist()  # type: ignore[arg-type]
    return found


def case(name: str, sent: list[Packet], arrived: list[Packet], *wanted: int) -> Any:
    """wanted: the place of the arrival of each departure, -1 for none."""
    return pytest.param(sent, arrived, list(wanted), id=name)


TWICE = [(0, 10, 0, 1), (0, 10, 3, 2)]


@pytest.mark.parametrize(
    ("sent", "arrived", "wanted"),
    [
        case("each its own", [(0, 10, 0, 0), (10, 20, 1, 0)], [(0, 10, 5, 0), (10, 20, 6, 0)], 0, 1),
        case("merged", [(0, 10, 0, 0), (10, 20, 1, 0), (20, 30, 2, 0)], [(0, 20, 5, 0), (20, 30, 6, 0)], 0, 0, 1),
        case("lost, and repeated", [(0, 10, 0, 1), (10, 20, 1, 1), (0, 10, 50, 2)], [(10, 20, 6, 1), (0, 10, 55, 2)],
             -1, 0, 1),
        case("two of each, in order", [(0, 10, 0, 1), (0, 10, 3, 1)], [(0, 10, 5, 1), (0, 10, 8, 1)], 0, 1),
        case("the second one was lost, by its time stamp", TWICE, [(0, 10, 5, 1)], 0, -1),
        case("the first one was lost, by its time stamp", TWICE, [(0, 10, 5, 2)], -1, 0),
        case("without time stamps the latest arrived", [(0, 10, 0, -1), (0, 10, 3, -1)], [(0, 10, 5, -1)], -1, 0),
        case("overtaken", [(0, 10, 0, 0), (10, 20, 1, 0)], [(10, 20, 5, 0), (0, 10, 6, 0)], 1, 0),
        case("overlap in part", [(0, 10, 0, 1), (10, 20, 1, 1), (5, 25, 9, 2)],
             [(0, 10, 5, 1), (10, 20, 6, 1), (5, 25, 15, 2)], 0, 1, 2),
        case("nothing arrived", [(0, 10, 0, 0)], [], -1),
    ],
)  # fmt: skip
def test_the_arrival_of_each_departure(sent: list[Packet], arrived: list[Packet], wanted: list[int]) -> None:
    assert matched(sent, arrived) == wanted


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=60), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_every_loss_is_found(losses: list[tuple[int, bool]], gap: int) -> None:
    """Each packet is lost 0..2 times, repeated 1000 later each time; timestamps tell the transmissions apart."""
    sent, arrived, number = [], [], []
    for n, (lost, _) in enumerate(losses):
        for attempt in range(lost + 1):
            at = n * gap + 1000 * attempt
            sent.append((10 * n, 10 * n + 10, at, attempt))
            number.append((n, attempt == lost))
            if attempt == lost:
                arrived.append((10 * n, 10 * n + 10, at + 7, attempt))
    order = sorted(range(len(sent)), key=lambda k: sent[k][2])
    sent, number = [sent[k] for k in order], [number[k] for k in order]
    arrived.sort(key=lambda packet: packet[2])
    for (n, arrives), at in zip(number, matched(sent, arrived), strict=True):
        assert (at >= 0) == arrives
        assert not arrives or arrived[at][0] == 10 * n
