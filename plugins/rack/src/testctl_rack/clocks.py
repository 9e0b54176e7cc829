# SPDX-License-Identifier: Apache-2.0
"""From the results of the hosts' `clock` collectors to the outcome's `clocks`, which metrics/core/clocks.py reads.

One host, the reference, runs the collector's server; every other one runs a client, before and after the traffic
(or all the time).  A client's offset is the reference's clock less its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testctl.core.outcome import HostClock

Result = Mapping[str, Any]
"""The result of a clock collector."""

_KEEPERS = ("ptp", "chrony")


def clocks_of(reference: str, server: Result, clients: Mapping[str, Sequence[Result]]) -> dict[str, HostClock]:
    """Each host's clock less the reference's or the common time's.

    The packets' answer, which holds whatever keeps the clocks; but when PTP or chrony keeps all of them and what
    they say of their error is less for each pair, and does not contradict the packets, theirs.
    clients: the results of each host, one or more.
    """
    by_packets = {host: _span(results) for host, results in clients.items()}
    states = {reference: _kept(server)} | {host: _kept(results[-1]) for host, results in clients.items()}
    kept = {host: state for host, state in states.items() if state is not None}
    if len(kept) == len(states) and len({state.source for state in kept.values()}) == 1:
        own = kept[reference]
        if all(_better(kept[host], own, by_packets[host]) for host in clients):
            return kept
    return {reference: HostClock(0, 0, "packets")} | by_packets


def _span(results: Sequence[Result]) -> HostClock:
    """The least interval that holds the intervals of all results."""
    low = min(-int(result["offset_ns"]) - int(result["error_run_ns"]) for result in results)
    high = max(-int(result["offset_ns"]) + int(result["error_run_ns"]) for result in results)
    middle = (low + high) // 2
    return HostClock(middle, max(high - middle, middle - low), "packets")


def _kept(result: Result) -> HostClock | None:
    """What keeps that host's clock, if it is one that all hosts can follow, and it does."""
    state = result.get("state") or {}
    if state.get("source") not in _KEEPERS or not state.get("synchronised"):
        return None
    if state.get("offset_ns") is None or state.get("error_ns") is None:
        return None
    return HostClock(int(state["offset_ns"]), int(state["error_ns"]), str(state["source"]))


def _better(host: HostClock, reference: HostClock, packets: HostClock) -> bool:
    """Whether two kept clocks are known better than by packets, and both answers can be true."""
    error = host.error_ns + reference.error_ns
    offset = host.offset_ns - reference.offset_ns
    return error < packets.error_ns and abs(offset - packets.offset_ns) <= error + packets.error_ns
