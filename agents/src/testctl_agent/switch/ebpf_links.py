# SPDX-License-Identifier: Apache-2.0
"""Links that change, as they lie in the maps of the eBPF switch (p4c_ebpf/runtime/link_model.h)."""

from __future__ import annotations

import os
import struct
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from testctl_agent.bpf import load
from testctl_agent.spec import jitter, largest, schedule, trace
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.schedule import Step
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Duration, Rate

ORIGIN = "link_origin"
PARAMETERS = ("rate", "delay", "down", "jitter", "largest")

_ARRAY, _INNER_MAP = 2, 0x1000
_HEAD = struct.Struct("=8Q")
"""Of struct link: how many rates, delays, times down and largest sizes, opportunities, period in ms, jitter, seed."""
_STATE = bytes(48)
"""Where its queue and its jitter are."""
_STEADY, _REORDERS, _IN_ORDER = range(3)
_STEP = struct.Struct("=4Q")
_CHUNK = 1024
_LEAD_NS = 10**12
_SETUP_NS = 900 * 10**9
"""How much later than now the traffic is taken to start until it is known."""
_UNLIMITED = 2**64 - 1
_JUMP = 2**64
_WORD = 2**64


@dataclass(frozen=True)
class Link:
    """A port's link over time, as the values of its parameters."""

    rate: Value = "none"
    delay: Value = 0
    down: Value = "none"
    jitter: Value = "none"
    largest: Value = "none"

    @property
    def reorders(self) -> bool:
        """Whether a packet may leave before one that came before it."""
        random = jitter.parse(str(self.jitter))
        delays = [step.value or 0 for step in schedule.steps_of(self.delay, Duration)]
        return not random.in_order if random else any(delay > following for delay, following in pairwise(delays))

    @property
    def changes(self) -> bool:
        varies = schedule.is_schedule(self.rate) or trace.is_trace(self.rate) or schedule.is_schedule(self.delay)
        return varies or any(value != schedule.NONE for value in (self.down, self.jitter, self.largest))

    @property
    def trace_ms(self) -> array[int]:
        """The times of the rate's trace; none for another rate."""
        return trace.parse(str(self.rate)) if trace.is_trace(self.rate) else array("I")


def packed(link: Link, times: Sequence[int] = ()) -> bytes:
    """struct link; times: of its trace, in ms."""
    rates = (Step(0, None),) if times else schedule.steps_of(link.rate, Rate)
    delays = schedule.steps_of(link.delay, Duration)
    downs = schedule.parse_down(str(link.down))
    random = jitter.parse(str(link.jitter))
    kind = _STEADY if random is None else _IN_ORDER if random.in_order else _REORDERS
    period, seed = times[-1] if times else 0, random.seed if random else 0
    sizes = largest.steps_of(link.largest)
    head = _HEAD.pack(len(rates), len(delays), len(downs), len(sizes), len(times), period, kind, seed)
    table = array("Q", jitter.quantiles(random) if random else [0] * (jitter.PLACES + 1))
    of_rates, level, before = [], 0, rates[0]
    for step in rates:
        level += _served(before, _led(step.at_ns) - _led(before.at_ns))
        of_rates.append((_led(step.at_ns), _UNLIMITED if step.value is None else step.value, *divmod(level, _WORD)))
        before = step
    of_delays = [(_led(step.at_ns), int(step.value or 0), 0, 0) for step in delays]
    of_sizes = [(_led(step.at_ns), step.bytes, 0, int(step.answered)) for step in sizes]
    of_downs = [(low + _LEAD_NS, high + _LEAD_NS, 0, 0) for low, high in downs]
    blank = bytes(_STEP.size)
    return (
        head
        + _STATE
        + table.tobytes()
        + b"".join(
            b"".join(_STEP.pack(*step) for step in steps) + blank * (schedule.MAX_STEPS - len(steps))
            for steps in (of_rates, of_delays, of_downs, of_sizes)
        )
    )


def _led(at_ns: int) -> int:
    """Steps' times in the maps begin before the traffic; the first step is valid from the beginning."""
    return at_ns + _LEAD_NS if at_ns else 0


def _served(step: Step, elapsed_ns: int) -> int:
    """By how much the link's integral grows over a step, in nanobits."""
    return _JUMP if step.value is None and elapsed_ns else (step.value or 0) * elapsed_ns


class LinkMaps:
    """The maps `links`, `traces` and `link_origin`, open as these descriptors (not owned).

    Raises TestbedError when the kernel refuses.
    """

    def __init__(self, links_fd: int, traces_fd: int, origin_fd: int) -> None:
        self._links, self._traces, self._origin = links_fd, traces_fd, origin_fd
        self._of: dict[int, Link] = {}

    def read(self, number: int) -> Link | None:
        """The link of a port as it is in the maps; None if it does not change."""
        link = self._of.get(number)
        if link is None:
            return None
        times = link.trace_ms
        want, got = packed(link, times), self._inner(self._links, number, 0, len(packed(link, times)))
        state = slice(_HEAD.size, _HEAD.size + len(_STATE))
        if want[: state.start] + want[state.stop :] != got[: state.start] + got[state.stop :]:
            raise ApplyError(f"port {number}: its link in the kernel's map is not the one that was set")
        for place in range(-(-len(times) // _CHUNK)):
            if self._inner(self._traces, number, place, 4 * _CHUNK) != _chunk(times, place):
                raise ApplyError(f"port {number}: its trace in the kernel's map is not the one that was set")
        return link

    def write(self, number: int, link: Link | None) -> None:
        """Let the port's link change so, its queue empty; None: it does not change."""
        if link is None:
            self._of.pop(number, None)
            return
        if not self._of:
            load.write_array(self._origin, struct.pack("=Q", time.monotonic_ns() + _SETUP_NS))
        times = link.trace_ms
        if times:
            chunks = -(-len(times) // _CHUNK)
            inner = load.create_map(_ARRAY, 4, 4 * _CHUNK, chunks, _INNER_MAP)
            for place in range(chunks):
                load.write_element(inner, struct.pack("=I", place), _chunk(times, place))
            self._put(self._traces, number, inner)
        data = packed(link, times)
        inner = load.create_map(_ARRAY, 4, len(data), 1)
        load.write_array(inner, data)
        self._put(self._links, number, inner)
        self._of[number] = replace(link)

    def _put(self, outer: int, number: int, inner: int) -> None:
        try:
            load.write_element(outer, struct.pack("=I", number), struct.pack("=I", inner))
        finally:
            os.close(inner)

    def _inner(self, outer: int, number: int, place: int, value_bytes: int) -> bytes:
        (map_id,) = struct.unpack("=I", load.read_element(outer, struct.pack("=I", number), 4))
        inner = load.open_map(map_id)
        try:
            return load.read_element(inner, struct.pack("=I", place), value_bytes)
        finally:
            os.close(inner)


def _chunk(times: Sequence[int], place: int) -> bytes:
    return array("I", times[place * _CHUNK : (place + 1) * _CHUNK]).tobytes().ljust(4 * _CHUNK, b"\0")
