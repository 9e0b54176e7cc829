# SPDX-License-Identifier: Apache-2.0
"""What captures are taken to show, compared with what the kernel of the sending host counted of the same.

A capture shows what left, and why only by inference: a timer, a probe or an ACK may let the same packet go.  The kernel
counts the reasons, but by host.  Where the two differ, the values that rest on the inference are null for all flows
that the host sends.  Where the trace of TCP differs, which has the reasons too, the point is invalid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testctl.metrics import recovery, timeouts
from testctl.metrics.core.available import of_flow, timers_alone
from testctl.metrics.core.memo import once
from testctl.metrics.core.spec import MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="counter_mismatches",
    help="values that are null because the kernel's counters differ from them",
    scope="point",
    values=(
        MetricInfo(
            "counter_mismatches",
            "",
            'which values are null for this, and why: "sender: loss_probes: 3 by its capture, 2 by its kernel '
            '(TcpExt.TCPLossProbes)"; none without any',
            text=True,
            needs="plan",
        ),
    ),
)


@dataclass(frozen=True)
class _Held:
    """A value, summed over the flows that a host sends, and the counters whose sum it must be.

    rests  all values that are not known where it is not
    traced whether the trace of a host's TCP measures it
    spare  a counter of times at which one of `counters` counted and nothing left
    """

    value: str
    counters: tuple[str, ...]
    rests: tuple[str, ...]
    traced: bool
    spare: str = ""


_TIMEOUTS, _PROBES = "TcpExt.TCPTimeouts", "TcpExt.TCPLossProbes"
_LENGTHS = ("timeout_length_mean_ms", "timeout_length_max_ms")
_TIMED = ("rto", "tlp", "loss")
"""Causes of stalls that which timer ran out decides."""
_BY_TIMER = tuple(f"stall_{cause}_{what}" for cause in _TIMED for what in ("count", "longest_ms"))
_OF_PROBES = tuple(name for name in _BY_TIMER if "_tlp_" in name)
_RECOVERY = tuple(info.name for info in recovery.SPEC.values)
_COUNTS = ("recoveries", "recoveries_not_measured", "recovery_timeouts")
_ABORTED = "TcpExt.TCPAbortOnTimeout"
_EARLY = "TcpExt.TCPPartialUndo"
"""Recoveries that time stamps ended (Eifel, RFC 3522), before all was acknowledged that they began with."""

_HELD = (
    _Held(
        "retransmission_timeouts",
        (_TIMEOUTS,),
        ("retransmission_timeouts", *_LENGTHS, *_BY_TIMER),
        True,
        _ABORTED,
    ),
    _Held("loss_probes", (_PROBES,), ("loss_probes", *_BY_TIMER), True),
    _Held("recoveries", ("TcpExt.TCPSackRecovery", "TcpExt.TCPRenoRecovery"), _RECOVERY, False),
    _Held(
        "recovery_timeouts",
        ("TcpExt.TCPSackRecoveryFail", "TcpExt.TCPRenoRecoveryFail"),
        tuple(name for name in _RECOVERY if name != "recoveries"),
        False,
    ),
)


@dataclass(frozen=True)
class Mismatch:
    """values: those that are null for `flows`; traced: whether they are by a trace of the host's TCP."""

    host: str
    flows: tuple[str, ...]
    values: tuple[str, ...]
    why: str
    traced: bool


def compute(records: Records, flow: str) -> dict[str, Number]:
    texts = [f"{mismatch.host}: {mismatch.why}" for mismatch in mismatches(records)]
    return {"counter_mismatches": "; ".join(texts) or "none"}


@once
def mismatches(records: Records) -> Sequence[Mismatch]:
    """In the order of hosts; of a host without counters, or whose flows' values are not known, none."""
    senders: dict[str, list[str]] = {}
    for flow in records.flows:
        if {"sender", "tcp_events"} & of_flow(records, flow):
            senders.setdefault(view(records, flow).sender, []).append(flow)
    return [mismatch for host, flows in senders.items() for mismatch in _of_host(records, host, tuple(flows))]


def _of_host(records: Records, host: str, flows: tuple[str, ...]) -> Iterator[Mismatch]:
    snmp = records.snmp(host)
    values = [timeouts.compute(records, flow) | recovery.compute(records, flow) for flow in flows]
    alone = timers_alone(records, host)
    for held in _HELD:
        if not set(held.counters) <= snmp.keys():
            continue
        numbers = [float(value) for value in (of_flow[held.value] for of_flow in values) if not isinstance(value, str)]
        if any(math.isnan(value) for value in numbers):
            continue
        seen, counted = int(sum(numbers)), sum(snmp.get(counter, 0) for counter in held.counters)
        if _agrees(seen, counted, snmp.get(held.spare, 0), alone):
            continue
        traced = held.traced and records.recorded(host, "tcp_events")
        by = "trace" if traced else "capture"
        why = f"{held.value}: {seen} by its {by}, {counted} by its kernel ({' + '.join(held.counters)})"
        yield Mismatch(host, flows, held.rests, why, traced)
    yield from _by_capture(records, host, flows, snmp, alone)
    if (early := snmp.get(_EARLY, 0)) and any(float(value["recoveries"]) > 0 for value in values):
        why = f"recovery_time_mean_ms: {early} by its kernel ended before all was acknowledged that was out ({_EARLY})"
        yield Mismatch(host, flows, tuple(name for name in _RECOVERY if name not in _COUNTS), why, traced=False)


def _agrees(seen: int, counted: int, spare: int, alone: bool) -> bool:
    """Whether a number is the kernel's; `spare` of what it counted sent nothing, and without `alone` it counted more
    than the point's flows."""
    return counted - spare <= seen <= counted or (not alone and seen < counted)


def _by_capture(
    records: Records, host: str, flows: tuple[str, ...], snmp: Mapping[str, int], alone: bool
) -> Iterator[Mismatch]:
    """What rests on the capture's inference of timers, though the numbers of timeouts and probes do not.

    A traced host has the trace's numbers, and new data that either a timer or the application let go is no probe.
    """
    if not {_TIMEOUTS, _PROBES} <= snmp.keys():
        return
    captured = [timeouts.by_capture(records, flow) for flow in flows if "sender" in of_flow(records, flow)]
    ran, probed, unsure = map(sum, zip(*captured, strict=True)) if captured else (0, 0, 0)
    if captured and unsure:
        why = f"stall_tlp_count: {unsure} packets of new data left by a timer or by the application"
        yield Mismatch(host, flows, _OF_PROBES, why, traced=False)
    if not captured or not records.recorded(host, "tcp_events"):
        return
    for seen, counter, spare, rests in (
        (ran, _TIMEOUTS, snmp.get(_ABORTED, 0), (*_LENGTHS, *_BY_TIMER)),
        (probed, _PROBES, 0, _BY_TIMER),
    ):
        counted = snmp[counter]
        if not _agrees(seen, counted, spare, alone):
            why = f"{rests[0]}: {seen} by its capture, {counted} by its kernel ({counter})"
            yield Mismatch(host, flows, rests, why, traced=False)
