# SPDX-License-Identifier: Apache-2.0
"""What clock collectors found, as clocks of a point."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from testctl.core.outcome import HostClock
from testctl_rack.clocks import clocks_of

KERNEL = {"source": "kernel", "synchronised": True, "offset_ns": 0, "error_ns": 1}


def found(offset_ns: int, error_ns: int, state: dict[str, Any] = KERNEL) -> dict[str, Any]:
    return {"offset_ns": offset_ns, "error_ns": error_ns // 2, "error_run_ns": error_ns, "state": state}


def ptp(offset_ns: int, error_ns: int, **others: Any) -> dict[str, Any]:
    return {"source": "ptp", "synchronised": True, "offset_ns": offset_ns, "error_ns": error_ns, **others}


def test_a_client_measures_the_reference_less_itself() -> None:
    said = clocks_of("alpha", {"state": KERNEL}, {"beta": [found(-3000, 40)]})
    assert said["alpha"] == HostClock(0, 0, "packets")
    assert said["beta"] == HostClock(3000, 40, "packets")


@given(st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 10**7)), min_size=1, max_size=5))
def test_before_and_after_are_both_within_the_error(given: list[tuple[int, int]]) -> None:
    beta = clocks_of("alpha", {}, {"beta": [found(*one) for one in given]})["beta"]
    for offset, error in given:
        assert abs(beta.offset_ns - -offset) + error <= beta.error_ns


def test_clocks_that_ptp_keeps_are_known_better() -> None:
    server = {"state": ptp(20, 100)}
    said = clocks_of("alpha", server, {"beta": [found(-3000, 9000, ptp(-30, 200))]})
    assert said == {"alpha": HostClock(20, 100, "ptp"), "beta": HostClock(-30, 200, "ptp")}


def test_unless_packets_know_better_or_contradict_or_one_is_not_kept() -> None:
    server = {"state": ptp(20, 100)}
    for client in (
        found(-3000, 250, ptp(-30, 200)),
        found(-30_000, 9000, ptp(-30, 200)),
        found(-3000, 9000, ptp(-30, 200, synchronised=False)),
        found(-3000, 9000, ptp(-30, 200, source="chrony")),
        found(-3000, 9000),
    ):
        assert clocks_of("alpha", server, {"beta": [client]})["beta"].source == "packets"
