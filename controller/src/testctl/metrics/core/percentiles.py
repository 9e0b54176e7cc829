# SPDX-License-Identifier: Apache-2.0
"""Mean and tail of many samples.

A percentile is the smallest sample that at least that share of samples does not exceed.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import NAN, MetricInfo, Number
from testctl.records.schema import Ints

_TAILS = {"p50": 0.50, "p99": 0.99, "p999": 0.999}


def rank_of(share: float, count: int) -> int:
    """The place, among `count` samples in ascending order, of the one that is the percentile."""
    return max(int(np.ceil(share * count)) - 1, 0)


def infos(name: str, what: str, tails: tuple[str, ...], null: str = "") -> tuple[MetricInfo, ...]:
    """Declares NAME_mean_us, NAME_<tail>_us … and NAME_max_us; null: "NaN where …"."""
    also = f"; {null}" if null else ""
    parts = ("mean", *tails, "max")
    return tuple(MetricInfo(f"{name}_{part}_us", "µs", f"{what}: {part}{also}", "lower") for part in parts)


def summarise(name: str, samples_ns: Ints, tails: tuple[str, ...], *, own: bool = False) -> dict[str, Number]:
    """The values that `infos` declares; NaN without samples.

    own: the samples are nobody else's, so that their order need not be kept
    """
    count = len(samples_ns)
    if not count:
        return {f"{name}_{part}_us": NAN for part in ("mean", *tails, "max")}
    ranks = {tail: rank_of(_TAILS[tail], count) for tail in tails}
    mean_ns = float(samples_ns.mean())
    ordered = samples_ns if own else samples_ns.copy()
    ordered.partition(sorted({*ranks.values(), count - 1}))
    return {
        f"{name}_mean_us": mean_ns / 1e3,
        **{f"{name}_{tail}_us": float(ordered[rank]) / 1e3 for tail, rank in ranks.items()},
        f"{name}_max_us": float(ordered[-1]) / 1e3,
    }
