# SPDX-License-Identifier: Apache-2.0
"""Fits the jitter of a lab's host to the measured jitter of a host of another testbed.

An interrupt is the first packet that reaches a host after the last one of a batch was received; how late the host
answers is its latency less the least one of its flow, which no packet can be below.  What a packet waited for in a
switch's queue, for GRO's flush timer or for a NIC's coalescing counts as the host's: measure without them.

The model is that of the lab (lab/kernel/lab_interrupts.c): a distribution with its mean, and a further, exponential
time for one interrupt in so many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from testctl_agent.spec.units import Duration

from testctl.metrics.core.clocks import apart
from testctl.metrics.core.latencies import latencies
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import Array, Ints

MIN_INTERRUPTS = 100
"""Minimum number of interrupts for a fit."""
MIN_LONG = 10
"""Minimum number of long times for a fitted tail."""
QUANTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
_LONG = {"constant": 1.5, "uniform": 2.2, "exponential": 10.0}
"""A time above this many means belongs to the tail: of an exponential distribution one in 22,000 is."""
_DRAWS = 200_000


@dataclass(frozen=True)
class Jitter:
    """Values of the lab's parameters jitter, jitter_distribution, jitter_tail and jitter_tail_every."""

    distribution: str
    mean_ns: int
    tail_ns: int = 0
    tail_every: int = 1000

    def tuples(self, host: str) -> list[tuple[str, str, str]]:
        tuples = [(host, "jitter", str(Duration(self.mean_ns))), (host, "jitter_distribution", self.distribution)]
        if self.tail_ns:
            tuples.append((host, "jitter_tail", str(Duration(self.tail_ns))))
            tuples.append((host, "jitter_tail_every", str(self.tail_every)))
        return tuples

    def draw(self, count: int, seed: int) -> Array:
        """So many times of it, in ns."""
        generator = np.random.default_rng(seed)
        if self.distribution == "exponential":
            times = generator.exponential(self.mean_ns, count)
        elif self.distribution == "uniform":
            times = generator.uniform(0, 2 * self.mean_ns, count)
        else:
            times = np.full(count, float(self.mean_ns))
        long = generator.random(count) < 1 / self.tail_every
        return times + long * generator.exponential(self.tail_ns, count)


def lateness(records: Records) -> dict[str, Ints]:
    """Host → delay of its response to each interrupt, in ns.

    Only of data receivers, where both ends of a flow were captured by one clock or by clocks whose error is
    known to be below the median.
    """
    arrivals: dict[str, list[tuple[Ints, Ints]]] = {}
    for name in records.flows:
        flow = view(records, name)
        left, latency = latencies(flow)
        clocks = apart(flow)
        if not len(left) or (clocks is not None and clocks.error_ns > float(np.median(latency))):
            continue
        reached = left + latency.min()
        arrivals.setdefault(flow.receiver, []).append((reached, left + latency))
    return {host: _of_interrupts(times) for host, times in sorted(arrivals.items())}


def _of_interrupts(packets: Sequence[tuple[Ints, Ints]]) -> Ints:
    """From (reached the host, received by it) of each packet, by flow."""
    reached, received = (np.concatenate(column) for column in zip(*packets, strict=True))
    order = np.lexsort((received, reached))
    reached, received = reached[order], received[order]
    before = np.maximum.accumulate(np.append(reached[0] - 1, received[:-1]))
    first = reached > before
    return np.asarray(received[first] - reached[first])


def fit(late_ns: Ints, seed: int = 1) -> Jitter:
    """The model of these times: among all distributions, with and without a tail, the one with the nearest quantiles.

    Raises ValueError for fewer than MIN_INTERRUPTS.
    """
    if len(late_ns) < MIN_INTERRUPTS:
        raise ValueError(f"want at least {MIN_INTERRUPTS} interrupts; got {len(late_ns)}")
    late = np.asarray(late_ns, np.float64)
    models = [model for name in _LONG for model in _models(name, late)]
    return min(models, key=lambda model: _error(model, late, seed))


def _models(distribution: str, late: Array) -> list[Jitter]:
    """A model without a tail, and one with a tail if there are enough long times."""
    models = [Jitter(distribution, round(float(late.mean())))]
    body, long = late[late <= np.percentile(late, 99)], late[:0]
    for _ in range(8):  # the threshold depends on the mean of the shorter times
        limit = _LONG[distribution] * float(body.mean())
        body, long = late[late <= limit], late[late > limit]
    if min(len(body), len(long)) >= MIN_LONG:
        mean, tail = float(body.mean()), float(long.mean()) - limit  # an exponential time has no memory
        share = len(long) / len(late) * float(np.exp(min((limit - mean) / tail, 50.0)))
        if share < 1:
            models.append(Jitter(distribution, round(mean), round(tail), round(1 / share)))
    return models


def _error(model: Jitter, late: Array, seed: int) -> float:
    """Distance of its quantiles from those of the times, by their ratios (1 ns stands for 0)."""
    at = list(QUANTILES.values())
    ours, theirs = np.percentile(model.draw(_DRAWS, seed), at), np.percentile(late, at)
    return float(np.abs(np.log((ours + 1) / (theirs + 1))).sum())


def quantiles(times: Array) -> dict[str, float]:
    """In µs, by name."""
    return {name: round(float(np.percentile(times, q)) / 1000, 3) for name, q in QUANTILES.items()}


def described(late_ns: Ints, seed: int) -> dict[str, Any]:
    """A host's fit for noise.json: the model, and its quantiles beside those that were measured, in µs."""
    model = fit(late_ns, seed)
    return {
        "interrupts": len(late_ns),
        **asdict(model),
        "measured_us": quantiles(np.asarray(late_ns)),
        "model_us": quantiles(model.draw(_DRAWS, seed)),
    }
