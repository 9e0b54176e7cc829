# SPDX-License-Identifier: Apache-2.0
"""An AQM that contradicts itself, or what else its port has, is refused with its place."""

from __future__ import annotations

import pytest

from controller.tests.plan.test_switches import load, refused

CODEL = "[left:right, aqm, codel]"
RATE = "[left:right, rate, 10mbit]"
WHO = "port left:right, aqm"


def test_an_aqm_is_canonical_in_the_point() -> None:
    plan = load(RATE, "[left:right, aqm, [none, codel ecn, fifo]]")
    found = [point.settings["left:right"]["aqm"] for point in plan.points]
    assert found == ["none", "codel target 5ms interval 100ms ecn", "fifo"]


def test_an_aqm_that_contradicts_itself() -> None:
    (line,) = refused(RATE, "[left:right, aqm, [none, red min 9kB max 5kB]]")
    assert line.startswith(f"<plan>:5:30: {WHO}: ")
    assert line.endswith("want min less than max; got min 9kB, max 5kB")


@pytest.mark.parametrize(
    ("tuples", "place", "why"),
    [
        ((CODEL,), "4:23", "want a rate at this port, or nothing ever waits there; got none"),
        (
            ('[left:right, rate, "10mbit; 1s 20mbit"]', CODEL),
            "5:23",
            "want a rate that does not change, such as 10mbit; got 10mbit; 1s 20mbit",
        ),
        ((RATE, "[left:right, down, 1s-2s]", CODEL), "6:23", "want no down at this port; got 1s-2s"),
        ((RATE, "[left:right, ecn_threshold, 30kB]", CODEL), "6:23", "want no ecn_threshold at this port; got 30000"),
        (
            (RATE, "[left:right, jitter, uniform 5ms seed 1]", CODEL),
            "6:23",
            "want no jitter at this port; got uniform 5ms seed 1",
        ),
        (
            (RATE, "[left, fate, delay data 5-9 of bulk by 3ms]", CODEL),
            "6:23",
            "want no packets delayed or swapped by the switch's fate; got delay data 5-9 of bulk by 3ms",
        ),
    ],
)
def test_an_aqm_that_the_port_can_not_have(tuples: tuple[str, ...], place: str, why: str) -> None:
    assert refused(*tuples) == [f"<plan>:{place}: {WHO}: codel target 5ms interval 100ms: {why}"]


def test_limits_that_are_never_reached() -> None:
    (line,) = refused(RATE, "[left:right, buffer, 50kB]", "[left:right, aqm, red min 30kB max 90kB]")
    assert line.endswith("want max at most the port's buffer, 50kB; got 90kB")
    (line,) = refused(RATE, "[left:right, aqm, policer rate 20mbit burst 15kB]")
    assert line.endswith("want its rate at most the port's, 10mbit, or it never drops; got 20mbit")
    (line,) = refused(RATE, "[left:right, buffer, 0]", CODEL)
    assert line.startswith("<plan>:5:26: port left:right, buffer: want")
    (line,) = refused(RATE, "[left:right, buffer, 18kB]", "[left:right, aqm, dualpi2]")
    assert line.endswith("want a buffer that holds more than its target, 18.75kB at 10mbit; got 18kB")
